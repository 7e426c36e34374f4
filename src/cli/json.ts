/** JSON as this command prints it: snake_case like everywhere outside TypeScript, positions as text, numbers exact, safe to show in a terminal. */
import { stringifyJson } from '../events/index.ts'

import { printable } from '../printable.ts'

/** Nothing that comes from the log is too large to print. */
const NO_LIMITS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'output' }

export function toJsonText(value: unknown, { layOut = false } = {}): string {
  const text = printable(stringifyJson(value, NO_LIMITS))
  return layOut ? layOutJson(text) : text
}

/** Indents JSON text without reading its values, so that numbers no double holds stay as they are. */
export function layOutJson(text: string): string {
  let depth = 0
  const newLine = () => `\n${'  '.repeat(depth)}`
  return text.replace(TOKEN, (token) => {
    if (token === '{' || token === '[') {
      depth++
      return token + newLine()
    }
    if (token === '}' || token === ']') {
      depth--
      return newLine() + token
    }
    if (token === ',') return token + newLine()
    return token === ':' ? ': ' : token
  })
}

/** Strings and empty brackets are taken whole. */
const TOKEN = /"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}[\],:]/g
