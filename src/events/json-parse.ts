import { ExactNumber, fitsDouble } from './exact-number.ts'
import { JsonError } from './json-error.ts'
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  endOfNumber,
  endOfString,
  isNumberStart,
  mayLoseNumbers,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  scanJson,
} from './json-scan.ts'
import { setOwn } from './own-property.ts'

/**
 * Reads JSON without losing a digit: a number that a double holds is a number, a larger integer is a bigint, and
 * one of more than 1,000 characters or any other number is an `ExactNumber`. Ordinary text goes straight to JSON.parse; only text that would lose something pays more.
 *
 * Reading allows deeper nesting than writing does, because a row that plain SQL wrote must stay readable; the limit is
 * what any recursive code downstream can stand.
 */
export function parseJson(text: string, { maxDepth = 1000 }: { maxDepth?: number } = {}): unknown {
  // Nesting of n levels takes 2n characters, so short text needs no look at its depth.
  if (text.length <= 2 * maxDepth && !mayLoseNumbers(text)) return parse(text)
  const { tooDeep, losesNumbers } = scanJson(text, maxDepth)
  if (tooDeep) {
    const reason = `nests deeper than ${maxDepth} levels`
    throw new JsonError('PAYLOAD_TOO_DEEP', 'The JSON text', reason, 'It was not read. Flatten it where it is written.')
  }
  const value = parse(text)
  return losesNumbers ? parseExactly(text) : value
}

/** The engine's own message quotes the text around the mistake, so only the position is taken from it. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const position = /at position (\d+)/.exec(String(error))?.[1]
    const reason = `is not valid JSON${position === undefined ? '' : ` at character ${position}`}`
    throw new JsonError('BAD_JSON', 'The text', reason, 'It was not read. Correct it where it is written.')
  }
}

interface Frame {
  readonly container: unknown[] | Record<string, unknown>
  key: string | undefined
}

/** Builds the value from text that is known to be valid. A stack of frames instead of recursion. */
function parseExactly(text: string): unknown {
  const root: Frame = { container: [], key: undefined }
  const stack = [root]
  for (let at = 0; at < text.length; at++) {
    const frame = stack[stack.length - 1]!
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      addString(frame, JSON.parse(text.slice(at, end + 1)))
      at = end
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const container = code === OPEN_BRACE ? {} : []
      add(frame, container)
      stack.push({ container, key: undefined })
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      stack.pop()
    } else if (isNumberStart(code)) {
      const end = endOfNumber(text, at)
      add(frame, toNumber(text.slice(at, end)))
      at = end - 1
    } else if (text.startsWith('true', at)) {
      add(frame, true)
      at += 3
    } else if (text.startsWith('false', at)) {
      add(frame, false)
      at += 4
    } else if (text.startsWith('null', at)) {
      add(frame, null)
      at += 3
    }
  }
  return (root.container as unknown[])[0]
}

/** In an object every other string is a key. */
function addString(frame: Frame, text: string): void {
  if (!Array.isArray(frame.container) && frame.key === undefined) frame.key = text
  else add(frame, text)
}

function add(frame: Frame, value: unknown): void {
  if (Array.isArray(frame.container)) {
    frame.container.push(value)
  } else {
    setOwn(frame.container, frame.key!, value)
    frame.key = undefined
  }
}

/**
 * An integer written with an exponent stays text: `1e999999999` as a bigint would fill the memory. So does one of more
 * than a thousand digits: the engine reads and writes a bigint in time that grows with the square of its length.
 */
function toNumber(text: string): number | bigint | ExactNumber {
  if (fitsDouble(text)) return Number(text)
  return text.length <= LONGEST_BIGINT && /^-?\d+$/.test(text) ? BigInt(text) : new ExactNumber(text)
}

const LONGEST_BIGINT = 1_000
