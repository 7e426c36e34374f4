/**
 * Reading the log: what is final, in order, from any point, and on as it grows. Nothing here connects until it is used;
 * following the log starts the one tailer of the process.
 */
import { AftercommitError } from '../errors.ts'
import {
  AftercommitEvent,
  compilePatterns,
  type EventDefinitions,
  type EventOf,
  isUndecodable,
  ownCopy,
  patternsToSql,
  upcast,
} from '../events/index.ts'
import { classify, type Database } from '../postgres/index.ts'
import { retryUntil } from '../runtime/index.ts'
import { type EventTrace, selectCorrelated, type TraceOptions, traceEvents } from './causes.ts'
import { type AnyEvent, toEvent } from './event-row.ts'
import { Follower } from './follower.ts'
import { checkLog, describeHolders, epochBegan, findLogObjects, type Holder, observe } from './frontier-statements.ts'
import type { ReadBudgetStatus } from './read-budget.ts'
import { readThrough } from './read-through.ts'
import { findStart, type StartPoint } from './start-point.ts'
import { selectEvent } from './statements.ts'
import type { Tailer } from './tailer.ts'
import { type UnblockRequest, type UnblockTarget, unblock } from './unblock.ts'
import { type StreamFilter, selectHead, selectStream, type WindowFilter } from './window-statements.ts'

export interface ReadOptions<Patterns extends readonly string[] = readonly string[]> {
  /** Where to begin: above a position, at a time, or at the oldest event kept. */
  readonly from?: StartPoint | undefined
  readonly on?: Patterns | undefined
  readonly tenant?: string | undefined
  /** Most events to give. Default: 100. */
  readonly limit?: number | undefined
}

export interface StreamOptions {
  readonly fromVersion?: number | undefined
  readonly toVersion?: number | undefined
  readonly limit?: number | undefined
}

export interface TailOptions<Patterns extends readonly string[] = readonly string[]> {
  /** Default: `'head'`, events that become final from now on. */
  readonly from?: StartPoint | undefined
  readonly on?: Patterns | undefined
  readonly tenant?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ListOptions {
  readonly on?: readonly string[] | undefined
  readonly aggregate?: { readonly type: string; readonly id: string } | undefined
  readonly correlationId?: string | undefined
  readonly tenant?: string | undefined
  readonly since?: Date | undefined
  /** Most events to give. Default: 20. */
  readonly limit?: number | undefined
  /** Only events below this position: the next page begins at the last one of the page before. */
  readonly before?: bigint | undefined
}

export interface LogStatus {
  readonly epoch: number
  /** The highest visible position. */
  readonly head: bigint
  /** Everything at or below is final. */
  readonly frontier: bigint
  /** Open transactions that have taken a position, oldest first. */
  readonly holders: readonly Holder[]
  readonly wake: 'doorbell' | 'poll'
  readonly problem: string | null
  /** What the readers of this process may hold of the log. */
  readonly memory: ReadBudgetStatus
}

export interface Log<D extends EventDefinitions = EventDefinitions> {
  /** Final events in position order. */
  read<const P extends readonly string[]>(options?: ReadOptions<P>): Promise<EventOf<D, P>[]>
  /** Every event from a point on, then every new one as it becomes final: in order, each once. Ends with the signal. */
  tail<const P extends readonly string[]>(options?: TailOptions<P>): AsyncIterableIterator<EventOf<D, P>>
  /** What is committed, newest first: for people who look. The newest may not be final yet. */
  list(options?: ListOptions): Promise<AnyEvent[]>
  get(id: string): Promise<AnyEvent | undefined>
  /** The events of one aggregate, oldest first. */
  stream(aggregate: { type: string; id: string }, options?: StreamOptions): Promise<AnyEvent[]>
  /** The newest event of one aggregate. */
  last(aggregate: { type: string; id: string }): Promise<AnyEvent | undefined>
  /** Everything that follows from one request or job, oldest first. Default: 1,000. `after`: the last position of the page before. */
  correlated(correlationId: string, options?: { limit?: number; after?: bigint }): Promise<AnyEvent[]>
  /** What led to an event and what it led to. */
  trace(id: string, options?: TraceOptions): Promise<EventTrace>
  status(): Promise<LogStatus>
  /** Ends one of the holders that `status()` names, audited. No position is ever skipped. */
  unblock(target: UnblockTarget, request: UnblockRequest): Promise<Holder>
}

export interface LogOptions {
  readonly database: Database
  readonly definitions: EventDefinitions | undefined
  readonly tailer: Tailer
  /** Starts the tailer if nobody has. */
  readonly ensureTailer: () => Promise<void>
  readonly wake: () => Promise<'doorbell' | 'poll'>
}

const PAGE = 500

export function createLog<D extends EventDefinitions>(options: LogOptions): Log<D> {
  const { database, tailer } = options
  const lift = (event: AnyEvent) => liftEvent(options.definitions, event)
  const select = async (filter: WindowFilter) => (await readThrough(database, filter)).map((row) => lift(toEvent(row)))
  const stream = async (filter: StreamFilter) => (await selectStream(database, filter)).map((row) => lift(toEvent(row)))

  const log = {
    async read({ from = 'start', on, tenant, limit = 100 }: ReadOptions = {}): Promise<AnyEvent[]> {
      const upTo = await settledPosition(database)
      const start = await findStart(database, from, upTo)
      return select({
        after: start.after,
        upTo,
        since: start.since,
        type: on && patternsToSql(on),
        tenant,
        limit: checkLimit(limit),
      })
    },
    tail: (tailOptions: TailOptions = {}) => follow(options, lift, tailOptions),
    async list({
      on,
      aggregate,
      correlationId,
      tenant,
      since,
      before,
      limit = 20,
    }: ListOptions = {}): Promise<AnyEvent[]> {
      const start = since && (await findStart(database, since, await settledPosition(database)))
      const type = on && patternsToSql(on)
      const wanted = { type, correlationId, tenant, limit: checkLimit(limit), newestFirst: true }
      if (aggregate !== undefined) return stream({ ...wanted, ...start, aggregate, before })
      const upTo = before === undefined ? await selectHead(database) : before - 1n
      return select({ after: 0n, ...start, ...wanted, upTo })
    },
    async get(id: string) {
      const row = await selectEvent(database, id)
      return row && lift(toEvent(row))
    },
    stream: async (
      aggregate: { type: string; id: string },
      { fromVersion, toVersion, limit = 1_000 }: StreamOptions = {},
    ) => stream({ aggregate, fromVersion, toVersion, limit: checkLimit(limit) }),
    last: async (aggregate: { type: string; id: string }) =>
      (await stream({ aggregate, limit: 1, newestFirst: true }))[0],
    correlated: async (correlationId: string, { limit = 1_000, after }: { limit?: number; after?: bigint } = {}) =>
      (await selectCorrelated(database, correlationId, { limit: checkLimit(limit), after })).map(lift),
    trace: (id: string, traceOptions: TraceOptions = {}) => traceEvents(database, id, traceOptions),
    async status(): Promise<LogStatus> {
      const check = await checkLog(database)
      const running = tailer.epoch === check.epoch
      const [holders, wake, settled] = await Promise.all([
        describeHolders(database),
        options.wake(),
        running ? tailer.frontier : settledPosition(database),
      ])
      const frontier = settled > check.frontier ? settled : check.frontier
      return {
        epoch: check.epoch,
        head: check.head,
        frontier,
        holders,
        wake,
        problem: check.problem,
        memory: tailer.memory,
      }
    },
    unblock: (target: UnblockTarget, request: UnblockRequest) => unblock(database, target, request),
  }
  return log as unknown as Log<D>
}

/** How far the log is final now, without a tailer: the head when nobody is appending, else the published frontier. */
export async function settledPosition(database: Database): Promise<bigint> {
  const { epoch, frontier } = await checkLog(database)
  const seen = await observe(database, await findLogObjects(database))
  const found = seen.holders.length === 0 && seen.head > frontier ? seen.head : frontier
  // While somebody appends less can be told than before; what was final in this epoch is final all the same.
  const before = settled.get(database)
  const position = before?.epoch === epoch && before.position > found ? before.position : found
  settled.set(database, { epoch, position })
  return position
}

const settled = new WeakMap<Database, { readonly epoch: number; readonly position: bigint }>()

async function* follow(
  { database, tailer, ensureTailer }: LogOptions,
  lift: (event: AnyEvent) => AnyEvent,
  { from = 'head', on, tenant, signal = new AbortController().signal }: TailOptions,
): AsyncGenerator<AnyEvent, void, void> {
  const matches = on === undefined ? () => true : compilePatterns(on)
  await ensureTailer()
  const start = await findStart(database, from, tailer.frontier)
  const isOver = () => signal.aborted || tailer.state === 'stopped'
  const follower = new Follower(tailer, { type: on && patternsToSql(on), tenant })
  let position = start.after

  /** The database is asked until it answers, however long it is away. */
  const next = () =>
    retryUntil(() => readNext(database, tailer, follower, position), {
      clock: database.clock,
      signal,
      mayRetry: (error) => !isOver() && classify(error) !== 'permanent',
    }).catch((error) => {
      if (isOver()) return undefined
      throw error
    })

  while (!isOver()) {
    const page = await next()
    if (page === undefined) continue
    for (const event of page.events) {
      if (signal.aborted) return
      position = event.position
      const late = start.since !== undefined && event.recordedAt < start.since
      if (!late && matches(event.type) && (tenant === undefined || event.tenant === tenant)) yield lift(event)
    }
    if (page.upTo > position) position = page.upTo
    if (!follower.hasMore(position)) await tailer.waitBeyond(position, signal)
  }
}

async function readNext(database: Database, tailer: Tailer, follower: Follower, position: bigint) {
  if (follower.hasLostPlace) follower.enterEpoch(await sharedEpoch(database, tailer, position))
  return follower.read(position, PAGE)
}

/** A reader may go on into a new epoch only from a place that both histories share. */
async function sharedEpoch(database: Database, tailer: Tailer, position: bigint): Promise<number> {
  await tailer.started
  const epoch = tailer.epoch
  const began = await epochBegan(database, epoch)
  if (epoch === 0 || began === undefined || position <= began) return epoch
  throw new AftercommitError(
    'HISTORY_FORKED',
    `The log began epoch ${epoch} after position ${began}, but this reader had come to ${position}: what it has read above ` +
      'is no longer part of history. Start again from that position and undo what followed from the rest.',
  )
}

/** What a reader is given: a copy of his own, with the newest form of the payload; position, id and the rest stay. */
export function liftEvent(definitions: EventDefinitions | undefined, shared: AnyEvent): AnyEvent {
  const event = ownCopy(shared)
  if (definitions === undefined || isUndecodable(event)) return event
  const stored = {
    id: event.id,
    type: event.type,
    schemaVersion: event.metadata.schemaVersion,
    // Most events have the newest form already: then nobody looks.
    get payload() {
      return event.payload
    },
  }
  const lifted = upcast(definitions, stored)
  if (lifted === stored) return event
  return new AftercommitEvent({
    ...fieldsOf(event),
    type: lifted.type,
    payload: lifted.payload,
    metadata: { ...event.metadata, schemaVersion: lifted.schemaVersion },
  })
}

function fieldsOf(event: AnyEvent) {
  const { id, position, aggregateType, aggregateId, version, tenant, occurredAt, recordedAt, changes, previous } = event
  return { id, position, aggregateType, aggregateId, version, tenant, occurredAt, recordedAt, changes, previous }
}

function checkLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= 10_000) return limit
  throw new AftercommitError('BAD_OPTION', 'limit must be a whole number from 1 to 10000. Read page by page for more.')
}
