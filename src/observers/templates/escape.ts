/** The field decides how what is inserted is escaped, so that data can never become structure. */
import { Refusal } from './template-error.ts'

/**
 * What a template fills:
 * - `plain`: text that nothing interprets, such as an SMS or a log line.
 * - `url`: an address. Each value is percent-encoded; see `checkUrlTemplate` for what may hold one.
 * - `header`: the value of an HTTP or mail header. Line breaks and what Latin-1 lacks are refused.
 * - `html`: HTML, as content or as a quoted attribute.
 * - `slack`: Slack's mrkdwn.
 * - `glob`: a key or a pattern of keys. A value means itself: no part of it works as a pattern.
 * - `json`: text inside a value that `stringifyJson` writes later, which escapes it. Not for JSON written by hand.
 */
export type Target = 'plain' | 'url' | 'header' | 'html' | 'slack' | 'glob' | 'json'

/** Escapes one inserted value. */
export function escapeFor(target: Target, text: string): string {
  switch (target) {
    case 'url':
      return percentEncode(text)
    case 'header':
      checkHeaderText(text)
      return text
    case 'html':
      return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (character) => ENTITIES.get(character)!) : text
    case 'slack':
      return /[&<>]/.test(text) ? text.replace(/[&<>]/g, (character) => ENTITIES.get(character)!) : text
    case 'glob':
      return text.replace(/[*?[\]\\]/g, '\\$&')
    default:
      return text
  }
}

/** Checks what the template itself says, once, when it is compiled. */
export function checkLiteral(target: Target, text: string): void {
  if (target === 'header') checkHeaderText(text)
}

/** Checks the whole of what came out. */
export function checkWhole(target: Target, text: string): void {
  if (target === 'header' && text.length > MAX_HEADER) {
    throw new Refusal(`the header is longer than ${MAX_HEADER} bytes`, 'Send a part of it, or send it in the body.')
  }
  if (target === 'url' && hasDotSegment(text)) {
    throw new Refusal(
      'a value makes "." or ".." a step of the path',
      'It would lead to another path than the one meant.',
    )
  }
}

/** For an absent value these fields have no harmless text: half an address is another address. */
export function needsValues(target: Target): boolean {
  return target === 'url' || target === 'header' || target === 'glob'
}

export function percentEncode(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch {
    throw new Refusal('half of a surrogate pair cannot stand in an address', 'Cut text between characters.')
  }
}

function checkHeaderText(text: string): void {
  if (LATIN1_TEXT.test(text)) return
  const problem = /[\r\n\0]/.test(text) ? 'a line break or U+0000' : 'a character outside of printable Latin-1'
  throw new Refusal(`a header cannot hold ${problem}`, 'Leave it out, encode it (urlencode), or send it in the body.')
}

/** Every reader of addresses resolves these, encoded or not, so encoding them does not help. */
function hasDotSegment(url: string): boolean {
  const [path = ''] = url.split(/[?#]/, 1)
  return path.split(/[/\\]/).some((step) => DOT_SEGMENT.test(step))
}

const MAX_HEADER = 8_192
const LATIN1_TEXT = /^[\t\x20-\x7e\xa0-\xff]*$/
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])
