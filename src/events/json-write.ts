import { ExactNumber, fitsNumeric } from './exact-number.ts'
import { formatPath, JsonError, type JsonErrorCode, type PathStep } from './json-error.ts'
import { isOrdinary } from './json-ordinary.ts'
import { isWellFormed } from './well-formed.ts'

export interface JsonLimits {
  /** Bytes of UTF-8; 1 MB unless told. */
  maxBytes?: number
  /** Levels of arrays and objects; 64 unless told, never more than 1000. */
  maxDepth?: number
  /** What the value is called in messages; `payload` unless told. */
  name?: string
}

const DEFAULT_MAX_BYTES = 1_048_576
const DEFAULT_MAX_DEPTH = 64

/**
 * Writes JSON that Postgres keeps and that reads back as the same value, or throws a `JsonError` with the path of what
 * cannot: U+0000, lone surrogates, NaN and infinities, functions, symbols, gaps, cycles, too deep, too large. Like
 * JSON.stringify it honours `toJSON` and leaves out keys that are undefined; unlike it, it writes bigint, `ExactNumber`
 * and -0 as they are.
 *
 * An ordinary value costs a quick look plus JSON.stringify: measured on 700 characters, 6.3 µs instead of 5.3, where a
 * replacer function takes 9.2. Anything out of the ordinary goes to the careful writer, which also finds the path.
 */
export function stringifyJson(value: unknown, limits: JsonLimits = {}): string {
  const { maxBytes = DEFAULT_MAX_BYTES, name = 'payload' } = limits
  const maxDepth = Math.min(limits.maxDepth ?? DEFAULT_MAX_DEPTH, 1000)
  let text: string | undefined
  if (isOrdinary(value, maxDepth, { charactersLeft: maxBytes })) {
    text = JSON.stringify(value)
    // JSON.stringify escapes U+0000 and lone surrogates, so one search of the text stands for a look at each string.
    if (text.includes('\\u') && BAD_ESCAPE.test(text)) text = undefined
  }
  if (text === undefined) text = writeCarefully(value, { maxBytes, maxDepth, name })
  // No character takes more than three bytes, so most texts need no count.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) throw tooLarge(name, maxBytes)
  return text
}

const BAD_ESCAPE = /\\u(?:0000|d[89a-f])/

/** The whole truth, slowly: every string is checked, every step of the path is known. */
function writeCarefully(root: unknown, { maxBytes, maxDepth, name }: Required<JsonLimits>): string {
  const path: PathStep[] = []
  const open = new Set<object>()
  const parts: string[] = []
  let written = 0
  write(root)
  return parts.join('')

  function write(original: unknown): void {
    const value = afterToJson(original)
    if (value === null || typeof value === 'boolean') put(String(value))
    else if (typeof value === 'string') putString(value, 'holds')
    else if (typeof value === 'number') putNumber(value)
    else if (typeof value === 'bigint') putExact(String(value))
    else if (value instanceof ExactNumber) putExact(value.text)
    else if (typeof value === 'object') writeObject(value)
    else refuse('BAD_JSON', `is ${describe(value)}, which JSON cannot hold`, 'Leave it out or write null.')
  }

  function afterToJson(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return value
    const invalid = value instanceof Date && Number.isNaN(value.getTime())
    if (invalid) refuse('BAD_JSON', 'is an invalid date', 'Give a real time or null.')
    const { toJSON } = value as { toJSON?: unknown }
    return typeof toJSON === 'function' ? toJSON.call(value, String(path.at(-1) ?? '')) : value
  }

  function writeObject(value: object): void {
    if (open.has(value)) refuse('BAD_JSON', 'contains itself', 'Write an id in place of the repeated object.')
    if (open.size >= maxDepth) {
      refuse('PAYLOAD_TOO_DEEP', `nests deeper than ${maxDepth} levels`, 'Flatten it, or refer to parts by id.')
    }
    const tag = Object.prototype.toString.call(value).slice(8, -1)
    if (NOT_DATA.has(tag)) {
      refuse(
        'BAD_JSON',
        `is a ${tag}, which JSON would write as something else`,
        'Turn it into an array or object first.',
      )
    }
    open.add(value)
    if (Array.isArray(value)) writeArray(value)
    else writeMembers(value as Record<string, unknown>)
    open.delete(value)
  }

  function writeArray(items: readonly unknown[]): void {
    put('[')
    for (let at = 0; at < items.length; at++) {
      if (at > 0) put(',')
      path.push(at)
      write(items[at])
      path.pop()
    }
    put(']')
  }

  function writeMembers(members: Record<string, unknown>): void {
    put('{')
    let first = true
    for (const key of Object.keys(members)) {
      const member = members[key]
      if (member === undefined) continue
      if (!first) put(',')
      first = false
      putString(key, 'has a key with')
      put(':')
      path.push(key)
      write(member)
      path.pop()
    }
    put('}')
  }

  function putString(text: string, verb: string): void {
    if (text.includes('\0')) refuse('BAD_JSON', `${verb} U+0000, which Postgres cannot store`, 'Remove or encode it.')
    if (!isWellFormed(text)) {
      refuse(
        'BAD_JSON',
        `${verb} half of a surrogate pair, which is no character`,
        'Cut text between characters, or encode it.',
      )
    }
    put(JSON.stringify(text))
  }

  function putNumber(value: number): void {
    if (!Number.isFinite(value))
      refuse('BAD_JSON', `is ${value}, which JSON cannot hold`, 'Give a finite number or null.')
    put(Object.is(value, -0) ? '-0' : String(value))
  }

  function putExact(text: string): void {
    if (!fitsNumeric(text)) refuse('BAD_JSON', 'is a number beyond what Postgres can keep', 'Write it as text.')
    put(text)
  }

  function put(text: string): void {
    written += text.length
    if (written > maxBytes) throw tooLarge(name, maxBytes)
    parts.push(text)
  }

  function refuse(code: JsonErrorCode, reason: string, advice: string): never {
    throw new JsonError(code, formatPath(name, path), reason, `Nothing was written. ${advice}`)
  }
}

/** Objects whose content JSON.stringify would drop or disguise without a word. */
const NOT_DATA: ReadonlySet<string> = new Set([
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'Promise', 'RegExp', 'Error'],
  ...['Number', 'String', 'Boolean', 'BigInt', 'Symbol'],
  ...['ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array'],
  ...['Uint16Array', 'Int32Array', 'Uint32Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array'],
])

function describe(value: unknown): string {
  return value === undefined ? 'undefined' : `a ${typeof value}`
}

function tooLarge(name: string, maxBytes: number): JsonError {
  return new JsonError(
    'PAYLOAD_TOO_LARGE',
    name,
    `is larger than ${maxBytes} bytes of JSON`,
    'Nothing was written. Store the bulk elsewhere and refer to it, or raise the limit.',
  )
}
