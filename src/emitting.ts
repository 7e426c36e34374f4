/** The words by which an instance appends: to its own transactions, to anybody's, and for its own events. */
import type { EventDefinitions } from './events/index.ts'
import {
  type EmitInput,
  type EmitRequest,
  type EmitSettings,
  type Emitted,
  emitEvent,
  emitEvents,
  emitOwn,
  type OwnInput,
} from './log/index.ts'
import { assertSameDatabase, type Database, type Queryable, type Transaction, toTransaction } from './postgres/index.ts'
import { messagingAttributes, type Registry, type Telemetry } from './runtime/index.ts'

export interface EmittingParts {
  readonly database: Database
  readonly metrics: Registry
  /** Undefined where nothing is traced. */
  readonly tracing: Telemetry | undefined
  readonly definitions: EventDefinitions | undefined
  readonly limits: Pick<EmitSettings, 'maxPayloadBytes' | 'maxNesting' | 'maxDepth' | 'prepareOnClients'>
  /** The schema refused an append: a newer version has migrated it. */
  readonly onSchemaTooNew: () => void
  /** Whether somebody reads lines at debug level. */
  readonly tellsDetails: boolean
}

export interface Emitting {
  readonly settings: EmitSettings
  /** Told of events that were appended by other means. */
  count(events: number): void
  one(db: Queryable, type: string, input: EmitInput): Promise<Emitted>
  many(db: Queryable, requests: readonly EmitRequest[]): Promise<Emitted[]>
  /** One with its type and content, or a list. */
  through(db: Queryable, first: unknown, event: unknown): Promise<unknown>
  /** Events of ours, which a catalogue need not list; in a transaction, or by itself without one. */
  own(request: EmitRequest, tx?: unknown): Promise<Emitted>
  /** An event whose type begins with `aftercommit.`, under an id that makes it repeatable. */
  internal(type: string, event: OwnInput): Promise<Emitted>
  /** A transaction of ours with the words of this instance. */
  wrap(tx: Transaction): unknown
}

export function createEmitting(parts: EmittingParts): Emitting {
  const { database, metrics, tracing, definitions, limits, onSchemaTooNew, tellsDetails } = parts
  const emitted = metrics.counter({
    name: 'aftercommit_events_emitted_total',
    help: 'Events appended by this process, whether or not their transaction committed.',
  })
  const settings: EmitSettings = {
    definitions,
    ...limits,
    onSchemaTooNew,
    currentTraceparent: () => tracing?.currentTraceparent(),
    tell: tellsDetails ? (fields: Record<string, unknown>) => database.logger.debug(fields, 'emitted') : undefined,
  }
  const ownSettings = { ...settings, definitions: undefined }

  /** The span's traceparent is kept with the events: it is the current one while they are completed. */
  function traced<T>(requests: readonly Pick<EmitRequest, 'type' | 'id'>[], append: () => Promise<T>): Promise<T> {
    if (tracing === undefined || requests.length === 0) return append()
    const name = requests.length === 1 ? `emit ${requests[0]!.type}` : 'emit events'
    return tracing.span(name, messagingAttributes('emit', requests), [], append)
  }

  const emitting: Emitting = {
    settings,
    count: (events) => emitted.inc(events),
    async one(db, type, input) {
      const result = await traced([{ type, id: input.id }], () => emitEvent(db, settings, type, input))
      emitted.inc()
      return result
    },
    async many(db, requests) {
      const results = await traced(requests, () => emitEvents(db, settings, requests))
      emitted.inc(results.length)
      return results
    },
    through: (db, first, event) =>
      Array.isArray(first) ? emitting.many(db, first) : emitting.one(db, first as string, (event ?? {}) as EmitInput),
    async own({ type, ...event }, tx) {
      const db = tx === undefined ? database : toTransaction(tx, database.schema, 'leave `tx` out to commit at once')
      await assertSameDatabase(database, db)
      const appended = await traced([{ type, id: event.id }], () => emitEvent(db, ownSettings, type, event))
      emitted.inc()
      return appended
    },
    async internal(type, event) {
      const appended = await emitOwn(database, ownSettings, type, event)
      emitted.inc()
      return appended
    },
    wrap: (tx) =>
      Object.create(tx, { emit: { value: (first: unknown, event?: unknown) => emitting.through(tx, first, event) } }),
  }
  return emitting
}
