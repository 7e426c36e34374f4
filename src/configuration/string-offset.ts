/**
 * Where a character of a TOML string stands in the file. A condition is reported by its offset in the text that the
 * string means; the reader of the file wants the line and column, past quotes, escapes and the first line break.
 */
export function sourceIndex(text: string, start: number, offset: number): number {
  const isMultiline = text.startsWith('"""', start) || text.startsWith("'''", start)
  const isBasic = text[start] === '"'
  let index = start + (isMultiline ? 3 : 1)
  if (isMultiline) index += lineBreakAt(text, index)
  for (let seen = 0; seen < offset && index < text.length; ) {
    const { width, meaning } = isBasic && text[index] === '\\' ? escapeAt(text, index) : plainAt(text, index)
    index += width
    seen += meaning
  }
  return isBasic ? index + swallowedAt(text, index) : index
}

/** How many characters of the file stand for how many of the string. */
interface Step {
  readonly width: number
  readonly meaning: number
}

const ESCAPE_WIDTH: Readonly<Record<string, number>> = { u: 6, U: 10, x: 4 }

function escapeAt(text: string, index: number): Step {
  const letter = text[index + 1] ?? ''
  const swallowed = swallowedAt(text, index)
  if (swallowed > 0) return { width: swallowed, meaning: 0 }
  const width = ESCAPE_WIDTH[letter] ?? 2
  const isPair = letter === 'U' && Number.parseInt(text.slice(index + 2, index + 10), 16) > 0xffff
  return { width, meaning: isPair ? 2 : 1 }
}

/** A backslash at the end of a line swallows the white space up to the next word. */
function swallowedAt(text: string, index: number): number {
  return /^\\[ \t]*\r?\n\s*/.exec(text.slice(index, index + 1_000))?.[0].length ?? 0
}

/** The parser reads every line break as one \n. */
function plainAt(text: string, index: number): Step {
  return { width: Math.max(1, lineBreakAt(text, index)), meaning: 1 }
}

function lineBreakAt(text: string, index: number): number {
  if (text.startsWith('\r\n', index)) return 2
  return text[index] === '\n' ? 1 : 0
}
