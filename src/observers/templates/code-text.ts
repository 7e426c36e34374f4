/** Just enough knowledge of CEL's text to find where an expression ends: quotes, brackets and words. */

/**
 * The index after a string literal whose opening quote is at `start`. One that is not closed ends with its line, or with
 * the source if it has three quotes. A backslash covers the next character in raw strings too, as the parser has it.
 */
export function skipString(source: string, start: number): number {
  const quote = source[start] ?? ''
  const triple = source.startsWith(quote.repeat(3), start)
  const closer = triple ? quote.repeat(3) : quote
  for (let at = start + closer.length; at < source.length; at++) {
    if (source.startsWith(closer, at)) return at + closer.length
    if (source[at] === '\\') at++
    else if (!triple && (source[at] === '\n' || source[at] === '\r')) return at
  }
  return source.length
}

/** Where a part of some code starts and ends. */
export interface Part {
  readonly start: number
  readonly end: number
}

/** Splits at a separator that stands outside of quotes and brackets. `||` is an operator and never splits. */
export function splitCode(source: string, separator: '|' | ','): Part[] {
  const parts: Part[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < source.length; at++) {
    const character = source[at]!
    if (character === '"' || character === "'") at = skipString(source, at) - 1
    else if ('([{'.includes(character)) depth++
    else if (')]}'.includes(character)) depth--
    else if (source.startsWith('||', at)) at++
    else if (depth === 0 && character === separator) {
      parts.push({ start, end: at })
      start = at + 1
    }
  }
  parts.push({ start, end: source.length })
  return parts
}

/** Puts another word in the place of a variable, wherever it is neither in quotes nor a field of something. */
export function renameVariable(source: string, from: string, to: string): string {
  let renamed = ''
  let copied = 0
  // The last two characters that are no white space: after `.` or `.?` a word is a field.
  let before = ''
  for (let at = 0; at < source.length; at++) {
    const start = at
    const character = source[at]!
    if (character === '"' || character === "'") at = skipString(source, at) - 1
    else if (isWordPart(character)) while (at + 1 < source.length && isWordPart(source[at + 1]!)) at++
    const token = source.slice(start, at + 1)
    if (token === from && !before.endsWith('.') && before !== '.?') {
      renamed += source.slice(copied, start) + to
      copied = at + 1
    }
    if (token.trim() !== '') before = (before + token).slice(-2)
  }
  return renamed + source.slice(copied)
}

function isWordPart(character: string): boolean {
  return /\w/.test(character)
}
