/** The filters about text and JSON. Null and absent pass through them, so that `default` can stand anywhere. */
import { percentEncode } from './escape.ts'
import { type Filter, wrongKind } from './filter.ts'
import { Refusal } from './template-error.ts'
import { jsonText, kindOfValue, toText } from './text.ts'

export const upper = textFilter('upper', (text) => text.toUpperCase())
export const lower = textFilter('lower', (text) => text.toLowerCase())
export const trim = textFilter('trim', (text) => text.trim())
export const urlencode = textFilter('urlencode', percentEncode)

/** `ada@example.com` → `a***@example.com`; what is no address is masked wholly. */
export const maskEmail = textFilter('mask_email', (text) => {
  const at = text.lastIndexOf('@')
  if (at < 1 || at === text.length - 1) return '***'
  const [first = ''] = text
  return `${first.length < at ? first : ''}***${text.slice(at)}`
})

/** Characters of text as CEL's `size` counts them, items of a list, keys of an object. */
export const length: Filter = {
  name: 'length',
  parameters: [],
  required: 0,
  apply: (value) => {
    if (value === null || value === undefined) return value
    if (typeof value === 'string') return countCharacters(value)
    if (Array.isArray(value)) return value.length
    if (kindOfValue(value) === 'an object') return Object.keys(value).length
    throw wrongKind('length', 'text, a list or an object', value)
  },
}

export const defaultTo: Filter = {
  name: 'default',
  parameters: ['value'],
  required: 1,
  apply: (value, [fallback]) => value ?? fallback,
}

export const json: Filter = {
  name: 'json',
  parameters: [],
  required: 0,
  apply: (value, _args, maxBytes) => jsonText(value, maxBytes),
}

export const jsonPretty: Filter = {
  name: 'json_pretty',
  parameters: [],
  required: 0,
  apply: (value, _args, maxBytes) => indent(jsonText(value, maxBytes), maxBytes),
}

function textFilter(name: string, change: (text: string) => string): Filter {
  return {
    name,
    parameters: [],
    required: 0,
    apply: (value, _args, maxBytes) => {
      if (value === null || value === undefined) return value
      const kind = kindOfValue(value)
      if (kind === 'a list' || kind === 'an object') throw wrongKind(name, 'text', value)
      return change(toText(value, maxBytes))
    },
  }
}

function countCharacters(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (isPair) {
      count--
      at++
    }
  }
  return count
}

/** Works on written JSON: numbers keep their digits, and nothing calls itself for deep values. */
function indent(compact: string, maxBytes: number): string {
  let pretty = ''
  let level = 0
  for (const token of compact.match(JSON_TOKENS) ?? []) {
    if (token === '{' || token === '[') pretty += token + lineBreak(++level)
    else if (token === '}' || token === ']') pretty += lineBreak(--level) + token
    else if (token === ',') pretty += token + lineBreak(level)
    else if (token === ':') pretty += ': '
    else pretty += token
    if (pretty.length > maxBytes) throw new Refusal(`the JSON is longer than ${maxBytes} bytes`, 'Send a part of it.')
  }
  return pretty
}

function lineBreak(level: number): string {
  return `\n${'  '.repeat(level)}`
}

const JSON_TOKENS = /\{\}|\[\]|[{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^{}[\],:"]+/g
