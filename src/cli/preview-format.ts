/** What an action would send, for people: laid out, and a body that is JSON as JSON rather than as text in quotes. */
import { parseJson } from '../events/index.ts'
import { printable } from '../printable.ts'
import { toJsonText } from './json.ts'

export function previewLines(content: Readonly<Record<string, unknown>>): string[] {
  const { body } = content
  const shown = typeof body === 'string' ? { ...content, body: readBody(body) } : content
  return toJsonText(shown, { layOut: true }).split('\n').map(printable)
}

function readBody(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return parseJson(text, { maxDepth: 1_000 })
  } catch {
    return text
  }
}
