/**
 * Cuts a template into text, `{{ holes }}` and `{% tags %}`. Comments vanish; `-` beside a brace eats the white space
 * on that side. Only the template is ever cut: what is inserted later is data, whatever it looks like.
 */
import { skipString } from './code-text.ts'
import { Refusal, type TemplateError } from './template-error.ts'

/** Source of an expression or a tag, and where it stands in the template. */
export interface Code {
  readonly source: string
  readonly offset: number
}

export type Piece =
  | { readonly kind: 'text'; readonly text: string; readonly offset: number }
  | { readonly kind: 'hole' | 'tag'; readonly code: Code /** Where its braces begin. */; readonly offset: number }

/** `fail` gets an offset and a complaint, and throws. */
export type Fail = (offset: number, complaint: Refusal) => TemplateError

export function scan(source: string, fail: Fail): Piece[] {
  const pieces: Piece[] = []
  let textStart = 0
  let eatLeft = false
  let at = source.indexOf('{')
  while (at !== -1) {
    const opener = source.slice(at, at + 2)
    const closer = CLOSERS.get(opener)
    if (closer === undefined) {
      at = source.indexOf('{', at + 1)
      continue
    }
    const end = opener === '{#' ? source.indexOf(closer, at + 2) : endOfCode(source, at + 2, closer)
    if (end === -1) throw fail(at, unclosed(opener, closer))
    const eatsBefore = source[at + 2] === '-'
    const eatsAfter = source[end - 1] === '-' && end - 1 > at + 2
    addText(textStart, at, eatsBefore)
    if (opener !== '{#') {
      const [from, to] = [at + (eatsBefore ? 3 : 2), end - (eatsAfter ? 1 : 0)]
      pieces.push({ kind: opener === '{{' ? 'hole' : 'tag', code: trimmed(source, from, to), offset: at })
    }
    eatLeft = eatsAfter
    textStart = end + 2
    at = source.indexOf('{', textStart)
  }
  addText(textStart, source.length, false)
  return pieces

  function addText(from: number, to: number, eatRight: boolean): void {
    let text = source.slice(from, to)
    if (eatLeft) text = text.trimStart()
    if (eatRight) text = text.trimEnd()
    if (text !== '') pieces.push({ kind: 'text', text, offset: from })
  }
}

const CLOSERS: ReadonlyMap<string, string> = new Map([
  ['{{', '}}'],
  ['{%', '%}'],
  ['{#', '#}'],
])

/** The part of the source between two offsets without the white space around it, with the offset it then has. */
export function trimmed(source: string, from: number, to: number): Code {
  const text = source.slice(from, to)
  return { source: text.trim(), offset: from + text.length - text.trimStart().length }
}

/** Closing braces within quotes, or of an object such as `{'a': {'b': 1}}`, do not close a hole. */
function endOfCode(source: string, from: number, closer: string): number {
  let open = 0
  for (let at = from; at < source.length; at++) {
    const character = source[at]
    if (open === 0 && source.startsWith(closer, at)) return at
    if (character === '"' || character === "'") at = skipString(source, at) - 1
    else if (character === '{') open++
    else if (character === '}') open--
  }
  return -1
}

function unclosed(opener: string, closer: string): Refusal {
  const quotes = opener === '{#' ? '' : ' Look for a quote or a brace that is not closed, too.'
  return new Refusal(`"${opener}" is never closed`, `Close it with "${closer}".${quotes}`)
}
