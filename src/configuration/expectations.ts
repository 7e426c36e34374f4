/**
 * What a schema expects, as the rest of a sentence that begins with the name of a setting: `must be true or false`.
 * A schema that can say it better is given its words with `expecting`; the others are read.
 */
import type { z } from 'zod'
import type { Path } from './mistake.ts'

const words = new WeakMap<object, string>()

export function expecting<Schema extends z.ZodType>(schema: Schema, text: string): Schema {
  words.set(schema, text)
  return schema
}

export function expectationOf(schema: z.ZodType | undefined): string | undefined {
  if (schema === undefined) return undefined
  const given = words.get(schema)
  if (given !== undefined) return given
  const { def } = schema as unknown as Known
  if ('innerType' in def) return expectationOf(def.innerType)
  if (def.type === 'union') return unionText(def.options ?? [])
  if (def.type === 'enum') return `must be ${either(choicesOf(schema))}`
  if (def.type === 'literal') return `must be ${(def.values ?? []).map((value) => JSON.stringify(value)).join(' or ')}`
  if (def.type === 'number') return numberText(schema as z.ZodNumber)
  return PLAIN[def.type]
}

/** The words a value may be, for a suggestion. */
export function choicesOf(schema: z.ZodType | undefined): string[] {
  if (schema === undefined) return []
  const { def } = schema as unknown as Known
  if (def.innerType) return choicesOf(def.innerType)
  if (def.type === 'union') return (def.options ?? []).flatMap(choicesOf)
  if (def.type === 'enum') return Object.values(def.entries ?? {}).map(String)
  return (def.values ?? []).filter((value) => typeof value === 'string')
}

/** The schema of what stands at a path below another; undefined where it has none. */
export function schemaAt(schema: z.ZodType | undefined, path: Path): z.ZodType | undefined {
  if (schema === undefined) return undefined
  const { def } = schema as unknown as Known
  if (def.innerType) return schemaAt(def.innerType, path)
  const [key, ...rest] = path
  if (key === undefined) return schema
  if (def.type === 'union')
    return (def.options ?? []).map((one) => schemaAt(one, path)).find((one) => one !== undefined)
  if (def.type === 'object')
    return Object.hasOwn(def.shape ?? {}, key) ? schemaAt(def.shape?.[String(key)], rest) : undefined
  return schemaAt(def.type === 'record' ? def.valueType : def.element, rest)
}

/** The keys that a table may have; undefined for what is no table with fixed keys. */
export function keysOf(schema: z.ZodType | undefined): string[] | undefined {
  const shape = (schema as unknown as Known | undefined)?.def.shape
  return shape && Object.keys(shape)
}

/** What the names in a table of any names must be. */
export function keyTypeOf(schema: z.ZodType | undefined): z.ZodType | undefined {
  return (schema as unknown as Known | undefined)?.def.keyType
}

/** The part of a zod definition that is read here; which keys there are depends on the type. */
interface Known {
  readonly def: {
    readonly type: string
    readonly innerType?: z.ZodType
    readonly shape?: Readonly<Record<string, z.ZodType>>
    readonly element?: z.ZodType
    readonly keyType?: z.ZodType
    readonly valueType?: z.ZodType
    readonly options?: readonly z.ZodType[]
    readonly entries?: Readonly<Record<string, string | number>>
    readonly values?: readonly unknown[]
  }
}

const PLAIN: Readonly<Record<string, string>> = {
  string: 'must be text',
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be a table',
  record: 'must be a table',
}

function unionText(options: readonly z.ZodType[]): string | undefined {
  const parts = options.flatMap((option) => expectationOf(option)?.replace(/^must be /, '') ?? [])
  return parts.length === 0 ? undefined : `must be ${[...new Set(parts)].join(', or ')}`
}

function numberText(schema: z.ZodNumber): string {
  const { minValue, maxValue, isInt } = schema
  const what = isInt ? 'a whole number' : 'a number'
  const from = minValue !== null && minValue > Number.MIN_SAFE_INTEGER ? ` from ${minValue}` : ''
  const to = maxValue !== null && maxValue < Number.MAX_SAFE_INTEGER ? ` to ${maxValue}` : ''
  return `must be ${what}${from}${to || (from && ' up')}`
}

function either(choices: readonly string[]): string {
  const quoted = choices.map((choice) => `"${choice}"`)
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
}
