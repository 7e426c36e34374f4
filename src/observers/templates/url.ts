/** Where a template may have holes in an address. */
import { type Piece, scan } from './scan.ts'
import { failFor } from './template.ts'
import { Refusal } from './template-error.ts'

/**
 * Refuses an address whose scheme, host or port depends on the event: whoever fills the payload would choose where
 * things are sent. Answers the offset of the first hole or tag; undefined when there is none, and nothing was checked.
 */
export function checkUrlTemplate(source: string, name = 'url'): { readonly firstHole: number | undefined } {
  const fail = failFor(name, source)
  const pieces = scan(source, fail)
  const first = pieces.findIndex(({ kind }) => kind !== 'text')
  const hole = pieces[first]
  if (hole === undefined) return { firstHole: undefined }
  if (!ORIGIN.test(textOf(pieces.slice(0, first)))) {
    const advice = 'Write the origin out, such as https://api.example.com/orders/{{ event.aggregate_id }}.'
    throw fail(hole.offset, new Refusal('an address has a hole before its path', advice))
  }
  return { firstHole: hole.offset }
}

function textOf(pieces: readonly Piece[]): string {
  return pieces.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('')
}

/** A whole origin and what ends it. Readers of addresses drop tabs and line breaks, so none may stand in it. */
const ORIGIN = /^https?:\/\/[^/?#\\\s]+[/?#\\]/i
