import type { StandardSchema } from '../events/index.ts'
import { ANYTHING, eitherShape, type Kind, type KnownFields, type Shape } from './shape.ts'

/**
 * The fields of an event as its schema declares them, so that a misspelt one is refused at load. Zod and ArkType tell
 * through the JSON Schema part of Standard Schema; for a library that does not, and for payloads that are no object,
 * the answer is undefined and every name is accepted.
 *
 * A schema that lists properties and says nothing of others is taken at its word: what it does not list is a mistake.
 */
export function knownFieldsOf(schema: StandardSchema): KnownFields | undefined {
  const described = describe(schema)
  if (described === undefined) return undefined
  return shapeOf(described, { root: described, depth: 0 }).fields
}

type JsonSchema = Readonly<Record<string, unknown>>

function describe(schema: StandardSchema): JsonSchema | undefined {
  const converter: unknown = Reflect.get(schema['~standard'], 'jsonSchema')
  if (!isObject(converter) || typeof converter.output !== 'function') return undefined
  try {
    // Dates, bigints and transforms have no JSON Schema; Zod says "anything" for them when asked to.
    const described: unknown = converter.output({
      target: 'draft-2020-12',
      libraryOptions: { unrepresentable: 'any' },
    })
    return isObject(described) ? described : undefined
  } catch {
    return undefined
  }
}

interface Place {
  readonly root: JsonSchema
  readonly depth: number
}

function shapeOf(schema: unknown, place: Place): Shape {
  if (!isObject(schema) || place.depth > DEEPEST) return ANYTHING
  const inside = { root: place.root, depth: place.depth + 1 }
  if (typeof schema.$ref === 'string') return shapeOf(followReference(schema.$ref, place.root), inside)
  const alternatives = schema.anyOf ?? schema.oneOf ?? schema.allOf
  if (Array.isArray(alternatives)) return alternatives.map((each) => shapeOf(each, inside)).reduce(eitherShape, NEVER)
  const kinds = kindsOf(schema)
  if (kinds === undefined) return ANYTHING
  const fields = isObject(schema.properties) ? fieldsOf(schema, schema.properties, inside) : undefined
  return {
    kinds,
    ...(fields === undefined ? {} : { fields }),
    ...(isObject(schema.items) ? { items: shapeOf(schema.items, inside) } : {}),
  }
}

function fieldsOf(schema: JsonSchema, properties: JsonSchema, inside: Place): KnownFields {
  const { additionalProperties: others = false, patternProperties } = schema
  const byName = new Map(Object.keys(properties).map((name) => [name, shapeOf(properties[name], inside)]))
  return { byName, open: others !== false || patternProperties !== undefined }
}

function kindsOf({ type, enum: values, const: value }: JsonSchema): Kind[] | undefined {
  if (Array.isArray(values)) return distinct(values.map((each) => KIND_OF_TYPE.get(typeName(each))))
  if (value !== undefined) return distinct([KIND_OF_TYPE.get(typeName(value))])
  if (type === undefined) return undefined
  const kinds = (Array.isArray(type) ? type : [type]).map((each) => KIND_OF_TYPE.get(each))
  return distinct(kinds)
}

function distinct(kinds: (Kind | undefined)[]): Kind[] {
  return [...new Set(kinds)].filter((kind) => kind !== undefined)
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

/** `#/$defs/order`, and `#` for a schema within itself. References elsewhere are not followed. */
function followReference(reference: string, root: JsonSchema): unknown {
  if (!reference.startsWith('#')) return undefined
  let found: unknown = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
  }
  return found
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const KIND_OF_TYPE: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ['string', 'text'],
  ['number', 'number'],
  ['integer', 'number'],
  ['boolean', 'bool'],
  ['array', 'list'],
  ['object', 'map'],
])
const NEVER: Shape = { kinds: [] }
/** A schema that contains itself never ends; nobody writes a path of more steps than this. */
const DEEPEST = 16
