/** Tables that an application declares to be captured, and the events that follow from the declaration. */
import { defineEvents, type EventDefinitions, type EventName, type StandardSchema } from '../events/index.ts'

export interface CaptureOptions {
  /** The aggregate type, which begins the types of the events. Default: the table's name in the singular. */
  readonly aggregate?: string | undefined
  /** Columns to leave out of every event. */
  readonly omit?: readonly string[] | undefined
  /** What TRUNCATE does: an event, a refusal, or nothing. Default: 'event'. */
  readonly truncate?: 'event' | 'deny' | 'ignore' | undefined
  /** Whether triggers fire once per statement or per row; must be given for a table with row triggers of its own. */
  readonly each?: 'statement' | 'row' | undefined
  /** Whether an UPDATE that changes nothing is an event. Default: false. */
  readonly unchanged?: boolean | undefined
}

export interface DeclaredTable extends CaptureOptions {
  /** What a row looks like as JSON: the payload of its events in the catalogue. */
  readonly row?: StandardSchema | undefined
}

/** By table: `orders`, or `sales.orders` with its schema. */
export type DeclaredTables = Readonly<Record<string, DeclaredTable>>

/** The catalogue with the events of declared tables; without a catalogue there is none. */
export function withCapturedEvents(
  definitions: EventDefinitions | undefined,
  tables: DeclaredTables = {},
): EventDefinitions | undefined {
  if (definitions === undefined || Object.keys(tables).length === 0) return definitions
  const captured = Object.entries(tables).flatMap(([table, { aggregate, row = ANYTHING }]) => {
    const type = aggregate ?? defaultAggregate(table)
    return [
      ...['created', 'updated', 'deleted', 'existing'].map((kind) => [`${type}.${kind}`, row] as const),
      [`${type}.truncated`, ANYTHING] as const,
    ]
  })
  const schemas = { ...Object.fromEntries(captured), ...definitions.schemas }
  return defineEvents(schemas, { streams: definitions.streams })
}

/** A catalogue with the events of captured tables: `order.created` and so on for the table `orders`. */
export type WithCaptured<D extends EventDefinitions, C extends DeclaredTables> =
  string extends EventName<D> ? D : keyof C extends never ? D : EventDefinitions<D['schemas'] & CapturedSchemas<C>>

type CapturedSchemas<C extends DeclaredTables> = {
  readonly [Name in RowEvents<C>]: RowOf<C, Name>
} & { readonly [Table in keyof C & string as `${TypeOf<C, Table>}.truncated`]: StandardSchema<{ table: string }> }

type RowEvents<C extends DeclaredTables> = {
  [Table in keyof C & string]: `${TypeOf<C, Table>}.${'created' | 'updated' | 'deleted' | 'existing'}`
}[keyof C & string]

type RowOf<C extends DeclaredTables, Name extends string> = {
  [Table in keyof C & string]: Name extends `${TypeOf<C, Table>}.${string}`
    ? C[Table] extends { readonly row: infer Row extends StandardSchema }
      ? Row
      : StandardSchema<Record<string, unknown>>
    : never
}[keyof C & string]

type TypeOf<C extends DeclaredTables, Table extends keyof C & string> = C[Table] extends {
  readonly aggregate: infer Given extends string
}
  ? Given
  : Singular<Unqualified<Table>>

type Unqualified<Table extends string> = Table extends `${string}.${infer Name}` ? Unqualified<Name> : Table

type Singular<Name extends string> = Name extends `${infer Stem}ies`
  ? Stem extends `${string}e`
    ? Name
    : `${Stem}y`
  : Name extends `${infer Stem}es`
    ? Stem extends `${string}${'ss' | 'x' | 'ch' | 'sh'}`
      ? Stem
      : DropS<Name>
    : DropS<Name>

type DropS<Name extends string> = Name extends `${infer Stem}s`
  ? Stem extends `${string}${'s' | 'u' | 'i'}`
    ? Name
    : Stem
  : Name

/** As `capture_default_type` in SQL. */
export function defaultAggregate(table: string): string {
  const name = table.split('.').at(-1)!
  if (/[^e]ies$/.test(name)) return name.replace(/ies$/, 'y')
  if (/(?:ss|x|ch|sh)es$/.test(name)) return name.replace(/es$/, '')
  if (/[^sui]s$/.test(name)) return name.replace(/s$/, '')
  return name
}

const ANYTHING: StandardSchema = {
  '~standard': { version: 1, vendor: 'aftercommit', validate: (value: unknown) => ({ value }) },
}
