/** The text of a document, by how much it says about it. */

export interface DocumentText {
  /** `title` and `name`. */
  readonly a: string
  /** What else stands at the top. */
  readonly b: string
  /** What stands deeper. */
  readonly c: string
}

/** Postgres keeps at most 1 MB of words for a document, and words take more room than the text they come from. */
const MOST_CHARACTERS = 100_000
const MOST_DEPTH = 100

/** Strings only: numbers, times and flags are what programs filter by, and nobody types them. */
export function textOf(document: Readonly<Record<string, unknown>>): DocumentText {
  const parts: Record<keyof DocumentText, string[]> = { a: [], b: [], c: [] }
  let left = MOST_CHARACTERS

  function add(value: unknown, weight: keyof DocumentText, depth: number): void {
    if (left <= 0 || depth > MOST_DEPTH) return
    if (typeof value === 'string') {
      const kept = value.slice(0, left)
      parts[weight].push(kept)
      left -= kept.length + 1
    } else if (Array.isArray(value)) {
      for (const item of value) add(item, typeof item === 'object' && weight === 'b' ? 'c' : weight, depth + 1)
    } else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) add(Reflect.get(value, key), 'c', depth + 1)
    }
  }

  // First, so that a long text beside it cannot use up its room.
  for (const key of FIRST) if (Object.hasOwn(document, key)) add(document[key], 'a', 0)
  for (const key of Object.keys(document)) if (!FIRST.includes(key)) add(document[key], 'b', 0)
  return { a: joined(parts.a), b: joined(parts.b), c: joined(parts.c) }
}

const FIRST = ['title', 'name']

/** What was cut in the middle of a character, and what Postgres has no place for, is no word. */
function joined(parts: readonly string[]): string {
  return parts.join('\n').replace(UNSTORABLE, ' ')
}

const UNSTORABLE = /\u0000|\p{Surrogate}/gu
