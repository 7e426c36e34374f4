/**
 * Keys and patterns of keys, by the rules of Redis: `*` is any text, `?` one character, `[abc]` one of these, `[^a-z]` one
 * of all others, and a backslash takes the meaning from what follows it. Matching is by hand and takes at most the
 * product of both lengths, whatever the pattern: a regular expression made of it could take for ever. Pure.
 */
export type KeyChoice = { readonly key: string } | { readonly pattern: string }

/** A text without a working `*`, `?` or `[` is one key, its backslashes taken away. */
export function toKeyChoice(text: string): KeyChoice {
  return isPattern(text) ? { pattern: text } : { key: text.replace(/\\(.)/gs, '$1') }
}

function isPattern(text: string): boolean {
  return /[*?[]/.test(withoutEscapes(text))
}

/** Whether a pattern has nothing that a key must have: it means every key there is, or nearly so. */
export function meansEverything(pattern: string): boolean {
  return !/\\.|[^*?]/s.test(pattern.replace(/\[(?:\\.|[^\]\\])*\]?/gs, ''))
}

export function compileGlob(pattern: string): (text: string) => boolean {
  const parts = parse(pattern)
  return (text) => matches(parts, text)
}

type Part = 'any' | ((character: string) => boolean)

function parse(pattern: string): Part[] {
  const parts: Part[] = []
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!
    if (character === '*') {
      if (parts.at(-1) !== 'any') parts.push('any')
    } else if (character === '?') parts.push(() => true)
    else if (character === '[') {
      const end = endOfClass(pattern, at)
      parts.push(oneOf(pattern.slice(at + 1, end)))
      at = end
    } else {
      if (character === '\\' && at + 1 < pattern.length) at++
      const literal = pattern[at]!
      parts.push((found) => found === literal)
    }
  }
  return parts
}

/** Where the class ends that begins here; one that is never closed goes to the end of the pattern. */
function endOfClass(pattern: string, start: number): number {
  let at = start + 1
  while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1
  return at
}

function oneOf(content: string): (character: string) => boolean {
  const isNegated = content.startsWith('^')
  const ranges: [string, string][] = []
  for (let at = isNegated ? 1 : 0; at < content.length; at++) {
    if (content[at] === '\\' && at + 1 < content.length) at++
    const from = content[at]!
    const isRange = content[at + 1] === '-' && at + 2 < content.length
    const to = isRange ? content[at + 2]! : from
    ranges.push(from <= to ? [from, to] : [to, from])
    if (isRange) at += 2
  }
  return (character) => ranges.some(([from, to]) => character >= from && character <= to) !== isNegated
}

/** After a `*` that took too little, it takes one more and everything after it is tried again. */
function matches(parts: readonly Part[], text: string): boolean {
  let part = 0
  let at = 0
  let star = -1
  let starAt = 0
  while (at < text.length) {
    const wanted = parts[part]
    if (wanted === 'any') {
      star = part++
      starAt = at
    } else if (wanted?.(text[at]!)) {
      part++
      at++
    } else if (star >= 0) {
      part = star + 1
      at = ++starAt
    } else return false
  }
  return parts.slice(part).every((rest) => rest === 'any')
}

function withoutEscapes(text: string): string {
  return text.replace(/\\./gs, '')
}
