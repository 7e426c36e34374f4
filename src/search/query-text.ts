/**
 * What somebody typed, taken apart: words, "phrases", -not and or are Postgres' own (websearch_to_tsquery, to which
 * nothing is a mistake); the last word also stands for all words that begin with it, as whoever types is not done.
 */
export interface QueryText {
  /** Everything. */
  readonly all: string
  /** What stands before the last word, and the word as a prefix; null where the last thing is no plain word. */
  readonly prefix: { readonly before: string; readonly word: string; readonly joins: 'and' | 'or' } | null
}

/** Nobody types more, and each word costs the database something. */
const MOST_CHARACTERS = 1_000

export function toQueryText(text: string): QueryText {
  const all = text.replace(UNUSABLE, ' ').slice(0, MOST_CHARACTERS)
  const [, before = '', last] = LAST_WORD.exec(all) ?? []
  const isQuoted = before.split('"').length % 2 === 0
  if (last === undefined || isQuoted) return { all, prefix: null }
  const either = /^(?:(.*)\s)?or\s*$/is.exec(before)
  // At the very beginning it is a word like any other.
  const isOr = either?.[1] !== undefined && either[1].trim() !== ''
  // Quoted: whatever the word is made of, it is one operand.
  const word = `'${last}':*`
  return { all, prefix: { before: isOr ? either[1]! : before, word, joins: isOr ? 'or' : 'and' } }
}

/** Letters and digits up to the end, with nothing but space before: no quote, no minus. */
const LAST_WORD = /^(.*\s)?([\p{L}\p{M}\p{N}]+)\s*$/su
const UNUSABLE = /\u0000|\p{Surrogate}/gu
