/** Tables that an application declares to be captured, and the events that follow from the declaration. */
import { defineEvents, type EventDefinitions, type StandardSchema } from '../events/index.ts'

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
