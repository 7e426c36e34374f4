/**
 * Refuses TOML on which the parser would run out of stack: the parser calls itself for every bracket and spreads every
 * text over arguments of a call. Reads brackets, texts, words and comments alone; the parser judges the rest.
 */

export interface Excess {
  /** Index in the text. */
  readonly at: number
  readonly message: string
}

const MOST_BRACKETS = 200
const LONGEST_VALUE = 65_536

/** The first bracket that nests too deep, or the first value that is too long. */
export function findExcess(text: string): Excess | undefined {
  let depth = 0
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = endOfToken(text, at)
    const first = text[at]
    if (first === '[' || first === '{') depth++
    else if (first === ']' || first === '}') depth = Math.max(0, depth - 1)
    else if (first !== '#' && end - at > LONGEST_VALUE) {
      return { at, message: `The value is longer than ${LONGEST_VALUE} characters. Make it shorter.` }
    }
    if (depth > MOST_BRACKETS) return { at, message: `It nests more than ${MOST_BRACKETS} levels. Make it flatter.` }
  }
  return undefined
}

function endOfToken(text: string, at: number): number {
  const first = text[at]!
  if (first === '"' || first === "'") return endOfText(text, at, first)
  if (first === '#') return orEnd(text, text.indexOf('\n', at))
  BLANK.lastIndex = at
  if (BLANK.test(text)) return BLANK.lastIndex
  WORD.lastIndex = at
  return WORD.test(text) ? WORD.lastIndex : at + 1
}

const BLANK = /[\s,=]+/y
const WORD = /[\w+:.-]+/y

/** A text that nobody closes goes on to the end of its line, or of the file: there the parser reports it. */
function endOfText(text: string, start: number, quote: string): number {
  const isLong = text.startsWith(quote.repeat(3), start)
  for (let at = start + (isLong ? 3 : 1); at < text.length; at++) {
    if (text[at] === '\\' && quote === '"') at++
    else if (text[at] === '\n' && !isLong) return at
    else if (text[at] === quote && !isLong) return at + 1
    else if (text[at] === quote && text.startsWith(quote.repeat(3), at)) return endOfQuotes(text, at + 3, quote)
  }
  return text.length
}

/** A text of many lines may end with up to two quotes of its own. */
function endOfQuotes(text: string, at: number, quote: string): number {
  if (text[at] !== quote) return at
  return text[at + 1] === quote ? at + 2 : at + 1
}

function orEnd(text: string, at: number): number {
  return at === -1 ? text.length : at
}
