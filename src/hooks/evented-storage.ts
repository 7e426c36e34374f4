/**
 * Wraps a repository so that its writes emit events. Over Postgres the event is appended in the repository's own
 * transaction: both are committed, or neither. A store that is not this Postgres emits after success, which is at most
 * once: a process that dies in between leaves a write that nobody hears of.
 */
import { AftercommitError } from '../errors.ts'
import type { Image } from './image-changes.ts'
import {
  createdEvent,
  deletedEvents,
  isRow,
  type StorageEvent,
  type StorageShape,
  updatedEvents,
} from './storage-events.ts'

/**
 * What a repository looks like. Where it has `createMany(rows)`, `updateMany(items with an id)` and `deleteMany(ids)`, they
 * emit one event per row. `getForUpdate(id)`, where it has one, reads the image before and keeps others from changing it.
 */
export interface Repository {
  get(id: never): Promise<unknown>
  create(row: never): Promise<unknown>
  /** The new row; when it gives none, it is read. */
  update(id: never, changes: never): Promise<unknown>
  delete(id: never): Promise<unknown>
  /** Runs `fn` with a repository that works in one transaction, and with that transaction. Needed over Postgres. */
  transaction?(fn: never): Promise<unknown>
}

export interface EventedStorageOptions {
  /** Type of the aggregate, and first part of the event types: `order` emits `order.created`, `.updated`, `.deleted`. */
  readonly entity: string
  /**
   * Appends: `ac.emit` over Postgres, called with the transaction and the events. With `store: 'foreign'` it is called with
   * undefined in place of the transaction: `(_, events) => ac.transaction((tx) => tx.emit(events))`.
   */
  readonly emit: (tx: never, events: never) => Promise<unknown>
  /** `'foreign'`: not this Postgres; events are emitted after success, at most once. */
  readonly store?: 'postgres' | 'foreign' | undefined
  /** The id of a row; its `id` unless told. */
  readonly idOf?: ((row: never) => string | number) | undefined
  /** What of a row goes into the event; all of it unless told. */
  readonly image?: ((row: never) => object) | undefined
}

/** The same repository, with events. Everything it offers besides stays as it is. */
export function eventedStorage<R extends Repository>(repository: R, options: EventedStorageOptions): R {
  const plain = repository as unknown as AnyRepository
  const { entity, store = 'postgres' } = options
  if (store === 'postgres' && plain.transaction === undefined) {
    throw new AftercommitError(
      'BAD_OPTION',
      `The repository of "${entity}" has no \`transaction\`, so its events could not be committed with its rows and it was ` +
        "not wrapped. Give it one, or say `store: 'foreign'` and accept that an event may be lost.",
    )
  }
  const settings: Settings = {
    entity,
    emit: options.emit as Settings['emit'],
    idOf: (options.idOf as Settings['idOf']) ?? ((row) => String(Reflect.get(Object(row), 'id'))),
    image: (options.image as Settings['image']) ?? ((row) => row as Image),
  }
  return (store === 'postgres' ? wrapPostgres(plain, settings) : wrapForeign(plain, settings)) as unknown as R
}

type Method = (...args: unknown[]) => Promise<unknown>
type AnyRepository = Record<'get' | 'create' | 'update' | 'delete', Method> & Record<string, Method | undefined>

interface Settings extends StorageShape {
  readonly emit: (tx: unknown, events: readonly StorageEvent[]) => Promise<unknown>
}

/** Does the work on a repository and hands on the events that follow from it. */
type Run = (work: (repository: AnyRepository, record: Recorder) => Promise<unknown>) => Promise<unknown>
type Recorder = (events: readonly StorageEvent[]) => Promise<unknown>

function wrapPostgres(repository: AnyRepository, settings: Settings): AnyRepository {
  const inTransaction = (fn: (bound: AnyRepository, tx: unknown) => Promise<unknown>) => repository.transaction!(fn)
  const recordIn =
    (tx: unknown): Recorder =>
    async (events) =>
      events.length > 0 && settings.emit(tx, events)
  const run: Run = (work) => inTransaction((bound, tx) => work(bound, recordIn(tx)))
  const transaction: Method = (fn) =>
    inTransaction((bound, tx) => {
      // At once and not at the end: a savepoint that is undone takes its events with it.
      const evented = overlay(
        bound,
        methodsOf(bound, settings, (work) => work(bound, recordIn(tx))),
      )
      return (fn as (repository: AnyRepository, tx: unknown) => Promise<unknown>)(evented, tx)
    })
  return overlay(repository, { ...methodsOf(repository, settings, run), transaction })
}

function wrapForeign(repository: AnyRepository, settings: Settings): AnyRepository {
  const emitAfter = async (work: (record: Recorder) => Promise<unknown>) => {
    const events: StorageEvent[] = []
    const result = await work(async (more) => events.push(...more))
    try {
      if (events.length > 0) await settings.emit(undefined, events)
    } catch (error) {
      throw lost(events, error)
    }
    return result
  }
  const run: Run = (work) => emitAfter((record) => work(repository, record))
  const methods = methodsOf(repository, settings, run)
  if (repository.transaction === undefined) return overlay(repository, methods)
  const transaction: Method = (fn) =>
    emitAfter((record) =>
      repository.transaction!((bound: AnyRepository, tx: unknown) => {
        const evented = overlay(
          bound,
          methodsOf(bound, settings, (work) => work(bound, record)),
        )
        return (fn as (repository: AnyRepository, tx: unknown) => Promise<unknown>)(evented, tx)
      }),
    )
  return overlay(repository, { ...methods, transaction })
}

function methodsOf(repository: AnyRepository, settings: Settings, run: Run): Record<string, Method> {
  const { idOf } = settings
  const methods: Record<string, Method> = {
    create: (row, ...rest) =>
      run(async (bound, record) => {
        const created = await bound.create(row, ...rest)
        await record([createdEvent(settings, created ?? row)])
        return created
      }),
    update: (id, changes, ...rest) =>
      run(async (bound, record) => {
        const before = await readBefore(bound, id)
        const updated = await bound.update(id, changes, ...rest)
        await record(updatedEvents(settings, before, isRow(updated) ? updated : await bound.get(id)))
        return updated
      }),
    delete: (id, ...rest) =>
      run(async (bound, record) => {
        const before = await readBefore(bound, id)
        const answer = await bound.delete(id, ...rest)
        await record(deletedEvents(settings, before))
        return answer
      }),
    createMany: (rows, ...rest) =>
      run(async (bound, record) => {
        const created = await bound.createMany!(rows, ...rest)
        await record(((Array.isArray(created) ? created : rows) as unknown[]).map((row) => createdEvent(settings, row)))
        return created
      }),
    updateMany: (items, ...rest) =>
      run(async (bound, record) => {
        const ids = (items as unknown[]).map(idOf)
        const before = await readAll(ids, (id) => readBefore(bound, id))
        const updated = await bound.updateMany!(items, ...rest)
        const after = await readAll(ids, (id) => bound.get(id))
        await record(ids.flatMap((_, at) => updatedEvents(settings, before[at], after[at])))
        return updated
      }),
    deleteMany: (ids, ...rest) =>
      run(async (bound, record) => {
        const before = await readAll(ids as unknown[], (id) => readBefore(bound, id))
        const answer = await bound.deleteMany!(ids, ...rest)
        await record(before.flatMap((row) => deletedEvents(settings, row)))
        return answer
      }),
  }
  return Object.fromEntries(Object.entries(methods).filter(([name]) => typeof repository[name] === 'function'))
}

function readBefore(repository: AnyRepository, id: unknown): Promise<unknown> {
  return repository.getForUpdate === undefined ? repository.get(id) : repository.getForUpdate(id)
}

/** One after the other: a transaction is one session. */
async function readAll(ids: readonly unknown[], read: (id: unknown) => Promise<unknown>): Promise<unknown[]> {
  const rows: unknown[] = []
  for (const id of ids) rows.push(await read(id))
  return rows
}

/** Called on the repository itself, so that its private fields and its own calls stay what they are. */
function overlay(repository: AnyRepository, methods: Record<string, Method>): AnyRepository {
  return new Proxy(repository, {
    get(target, name) {
      if (typeof name === 'string' && Object.hasOwn(methods, name)) return methods[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function lost(events: readonly StorageEvent[], cause: unknown): AftercommitError {
  const [first] = events
  const rest = events.length > 1 ? ` and ${events.length - 1} more` : ''
  return new AftercommitError(
    'EVENT_NOT_EMITTED',
    `The write succeeded, but "${first!.type}"${rest} could not be emitted, so nobody hears of it. Emit it again from what ` +
      'is stored now; do not repeat the write.',
    { cause },
  )
}
