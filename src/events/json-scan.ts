import { fitsDouble } from './exact-number.ts'

/**
 * Looks at JSON text without building anything: how deep it nests, and whether a double would lose one of its numbers.
 * The text may be invalid; the scan then ends somewhere harmless and the parser reports it.
 */
export function scanJson(text: string, maxDepth: number): { tooDeep: boolean; losesNumbers: boolean } {
  let depth = 0
  let losesNumbers = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfString(text, at)
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth > maxDepth) return { tooDeep: true, losesNumbers }
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--
    } else if (isNumberStart(code)) {
      const end = endOfNumber(text, at)
      if (!losesNumbers) losesNumbers = mayLose(text, at, end) && !fitsDouble(text.slice(at, end))
      at = end - 1
    }
  }
  return { tooDeep: false, losesNumbers }
}

/**
 * A cheap test that is true for every text holding a number a double would lose, and for few others. Doubles keep any
 * 15 digits, so such a number either has 16 or more, or an exponent of three digits. Every 16th character is enough to
 * find a run of 16. On a payload of 700 characters both checks together take about a tenth of the time of JSON.parse.
 */
export function mayLoseNumbers(text: string): boolean {
  for (let at = 0; at < text.length; at += 16) {
    if (isDigitOrDot(text.charCodeAt(at)) && isLongRun(text, at)) return true
  }
  return LARGE_EXPONENT.test(text)
}

/** The index of the closing quote. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at)
    if (at < 0) return text.length
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return at
  }
}

/** The index after the last character that can belong to the number. */
export function endOfNumber(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && isNumberPart(text.charCodeAt(at))) at++
  return at
}

export const QUOTE = 34
export const OPEN_BRACKET = 91
export const CLOSE_BRACKET = 93
export const OPEN_BRACE = 123
export const CLOSE_BRACE = 125
const BACKSLASH = 92
const LARGE_EXPONENT = /(?:^|[:,[\s])-?[\d.]+[eE][-+]?\d{3}/

export function isNumberStart(code: number): boolean {
  return code === 45 || (code >= 48 && code <= 57)
}

function isNumberPart(code: number): boolean {
  return isDigitOrDot(code) || code === 45 || code === 43 || code === 101 || code === 69
}

function isDigitOrDot(code: number): boolean {
  return (code >= 48 && code <= 57) || code === 46
}

function isLongRun(text: string, at: number): boolean {
  let start = at
  let end = at + 1
  while (start > 0 && isDigitOrDot(text.charCodeAt(start - 1))) start--
  while (end < text.length && isDigitOrDot(text.charCodeAt(end))) end++
  return end - start >= 16
}

function mayLose(text: string, start: number, end: number): boolean {
  if (end - start > 15) return true
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === 101 || code === 69) return true
  }
  return false
}
