/**
 * Words that were found, marked for a page. The text of a document is whatever an event brought, so it is escaped, and
 * the marks are put in last: Postgres marks with two characters of the private use area, which are taken out of the text
 * before, so that no text can bring a mark of its own.
 */
export const MARK_START = '\ue000'
export const MARK_END = '\ue001'

export function withoutMarks(text: string): string {
  return text.replace(/[\ue000\ue001]/g, ' ')
}

/** Safe to put into HTML: the only tag in it is `<mark>`. */
export function toHtml(marked: string): string {
  return marked
    .replace(/[&<>"']/g, (character) => ENTITIES[character]!)
    .replaceAll(MARK_START, '<mark>')
    .replaceAll(MARK_END, '</mark>')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
