/** Registering subscriptions, running those of this process, and looking at all of them. */
import { countWaitingLetters, hasRedriven, type WaitingLetters } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from '../events/index.ts'
import type { Tailer } from '../log/index.ts'
import type { Database, Transaction } from '../postgres/index.ts'
import type { ProcessLease } from '../processes/index.ts'
import {
  type Clock,
  formatDuration,
  type PartOptions,
  type Registry,
  type Service,
  type Telemetry,
} from '../runtime/index.ts'
import type { Definition } from './definition.ts'
import { createHandle, type SubscriptionHandle } from './handle.ts'
import { lowestCheckpoint, lowestNeeded, type SubscriptionState, selectStates } from './handle-statements.ts'
import { Keeper } from './keeper.ts'
import { createSubscriptionMetrics } from './metrics.ts'
import { placeDefinition } from './placing.ts'
import { selectTransactionLimits, selectVersion } from './statements.ts'

export interface Subscriptions {
  /** The handle of a subscription, wherever it runs. */
  get(id: string): SubscriptionHandle
  list(): Promise<SubscriptionState[]>
}

export interface SubscriptionsOptions extends PartOptions {
  readonly database: Database
  readonly tailer: Tailer
  readonly processLease: ProcessLease
  readonly definitions: EventDefinitions | undefined
  /** Whether this process hears of changes; if not, it looks for them. */
  readonly willHear: () => boolean
  readonly wrapTransaction: (tx: Transaction) => unknown
  readonly storeStacks: boolean
  readonly autoRedrive: { readonly afterMs: number; readonly max: number } | undefined
  /** How long `stop` may still wait for what is under way. */
  readonly drainMs: () => number
  /** Whether somebody reads lines at debug level. */
  readonly tellsDetails: boolean
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
}

export interface SubscriptionsPart extends Subscriptions {
  /** Known from now on; registered in the database when the process starts. */
  register(definition: Definition): SubscriptionHandle
  /**
   * Ends what runs under this id here and goes on with another definition, which is a new generation if it differs.
   * Resolves when no process moves the checkpoint with the one before; when that fails, the one before goes on. False: it
   * is registered in the database when the process starts.
   */
  replace(definition: Definition): Promise<boolean>
  /** Registers in the database what was registered here, and runs it. */
  readonly service: Service
  /** Only those whose id matches a pattern are run by this process; `*` stands for anything. */
  only(patterns: readonly string[]): void
  /** Whether everything that runs here has come to this position. */
  reached(position: bigint): boolean
  /** Whether subscriptions that run here have letters to redrive, or parked events that wait for no dead letter. */
  hasRedriven(): Promise<boolean>
  /** Another process, or this one, changed something in the database. */
  nudged(): void
  /** A process gave a subscription back. */
  freed(): void
  nudgeAll(): Promise<void>
  neededFrom(): Promise<bigint | null>
}

const AFTER_POLL_MS = 100

export function createSubscriptions(options: SubscriptionsOptions): SubscriptionsPart {
  const { database, tailer, clock, logger, metrics, health } = options
  const known = new Map<string, Definition>()
  /** The generation that this process gave a definition. */
  const placed = new WeakMap<Definition, bigint>()
  const counted = createSubscriptionMetrics(metrics)
  let isMine: (id: string) => boolean = () => true
  let started = false

  const keeper = new Keeper({
    database,
    clock,
    logger,
    metrics,
    health,
    processLease: options.processLease,
    willHear: options.willHear,
    autoRedrive: options.autoRedrive,
    drainMs: options.drainMs,
    place: (definition) => placeAgain(definition),
    runnerParts: (definition) => ({
      database,
      tailer,
      clock,
      logger,
      tellsDetails: options.tellsDetails,
      tracing: options.tracing,
      metrics: counted(definition.id),
      definitions: options.definitions,
      wrapTransaction: options.wrapTransaction,
      limit: definition.after.length > 0 ? limitBy(definition.after) : undefined,
      storeStacks: options.storeStacks,
    }),
  })
  exposeGauges(
    metrics,
    onceASecond(clock, () => selectStates(database)),
    () => countWaitingLetters(database),
  )

  /** The lowest checkpoint of others, asked for at most every so often. */
  function limitBy(ids: readonly string[]): () => Promise<bigint> {
    let knownLimit = 0n
    let dueMs = 0
    return async () => {
      if (clock.monotonic() < dueMs) return knownLimit
      knownLimit = await lowestCheckpoint(database.control, ids)
      dueMs = clock.monotonic() + AFTER_POLL_MS
      return knownLimit
    }
  }

  async function place(definition: Definition): Promise<bigint> {
    if (definition.transactional) await assertTransactionLimits(database, definition)
    const { id } = definition
    const { generation, isNew, position } = await placeDefinition(database, definition)
    logger.info(
      { subscription: id, generation: String(generation), ...(isNew ? { position: String(position) } : {}) },
      'subscription registered',
    )
    if (!isNew) await nudgeAll()
    placed.set(definition, generation)
    return generation
  }

  /**
   * Of a configuration, the one that was placed last wins. One that this process placed before and that lost to another
   * does not win again because a drain or a retry places it once more.
   */
  async function placeAgain(definition: Definition): Promise<bigint> {
    const before = definition.version === undefined ? undefined : placed.get(definition)
    if (before === undefined) return place(definition)
    const version = await selectVersion(database.control, definition.id)
    return version === undefined || version === definition.version ? place(definition) : before
  }

  async function nudgeAll(): Promise<void> {
    keeper.nudge()
    await database.query('select pg_catalog.pg_notify($1::text, $2::text)', [database.schemaName.channel, NUDGE])
  }

  /** It may be registered again afterwards. */
  function stopHere(id: string): Promise<void> {
    known.delete(id)
    return keeper.remove(id)
  }

  const mine = () => [...known.keys()].filter(isMine)
  const handleParts = { database, nudge: nudgeAll, stopHere }
  return {
    register(definition) {
      if (known.has(definition.id)) {
        throw new AftercommitError(
          'BAD_OPTION',
          `Subscription "${definition.id}" is registered twice in this process; the second was refused.`,
        )
      }
      known.set(definition.id, definition)
      if (started && isMine(definition.id)) keeper.add(definition)
      return createHandle(definition.id, handleParts)
    },
    async replace(definition) {
      const { id } = definition
      const before = known.get(id)
      known.set(id, definition)
      await keeper.remove(id)
      if (!started || !isMine(id)) return false
      try {
        // From here on nobody moves the checkpoint with the definition before.
        keeper.addPlaced({ definition, generation: await place(definition) })
        return true
      } catch (error) {
        if (before) {
          known.set(id, before)
          keeper.add(before)
        }
        throw error
      }
    },
    service: {
      name: keeper.name,
      get state() {
        return keeper.state
      },
      async start() {
        started = true
        for (const definition of known.values()) {
          if (isMine(definition.id)) keeper.addPlaced({ definition, generation: await placeAgain(definition) })
        }
        await keeper.start()
      },
      async stop() {
        started = false
        await keeper.stop()
      },
    },
    only(patterns) {
      isMine = (id) => patterns.some((pattern) => matchesId(id, pattern))
    },
    reached: (position) => mine().every((id) => (keeper.runner(id)?.settledAt ?? -1n) >= position),
    async hasRedriven() {
      const ids = mine()
      return ids.length > 0 && (await hasRedriven(database.control, ids))
    },
    nudged: () => keeper.nudge(),
    freed: () => keeper.freed(),
    nudgeAll,
    neededFrom: () => lowestNeeded(database.control),
    get: (id) => createHandle(id, handleParts),
    list: () => selectStates(database),
  }
}

/** A handler in a transaction that the server ends before its time would be tried again for ever. */
async function assertTransactionLimits(database: Database, { id, timeoutMs }: Definition): Promise<void> {
  for (const { setting, ms } of await selectTransactionLimits(database)) {
    if (ms >= timeoutMs) continue
    throw new AftercommitError(
      'BAD_OPTION',
      `Subscription "${id}" is transactional and its handler may take ${formatDuration(timeoutMs)}, but the server ends ` +
        `such a transaction after ${formatDuration(ms)} (${setting}), so it was not started. Lower its \`timeout\`, or raise the setting for this role.`,
    )
  }
}

/** By parts around each `*`: the first and last are anchored, the others come in order. */
function matchesId(id: string, pattern: string): boolean {
  const parts = pattern.split('*')
  if (parts.length === 1) return id === pattern
  const last = parts.pop()!
  let at = parts[0]!.length
  if (!id.startsWith(parts[0]!)) return false
  for (const part of parts.slice(1)) {
    const found = id.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return id.length - last.length >= at && id.endsWith(last)
}

/** Rides on the bell's channel: the payload tells it from a ring. */
export const NUDGE = 'nudge'

/** Three gauges of one scrape share one look. */
function onceASecond<T>(clock: Clock, ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  let dueMs = 0
  return () => {
    if (asked === undefined || clock.monotonic() >= dueMs) {
      dueMs = clock.monotonic() + 1_000
      asked = ask()
    }
    return asked
  }
}

function exposeGauges(
  metrics: Registry,
  states: () => Promise<SubscriptionState[]>,
  letters: () => Promise<WaitingLetters[]>,
): void {
  const gauge = (name: string, help: string, value: (state: SubscriptionState) => number) =>
    metrics
      .gauge({ name, help, labels: ['subscription'] })
      .collect(async () =>
        (await states()).map((state) => ({ labels: { subscription: state.id }, value: value(state) })),
      )
  gauge('aftercommit_checkpoint_lag', 'Positions between the checkpoint and the head.', ({ lag }) => Number(lag))
  gauge(
    'aftercommit_checkpoint_age_seconds',
    'Age of the oldest event that is not finished.',
    ({ lagSeconds }) => lagSeconds,
  )
  gauge('aftercommit_parked_keys', 'Keys whose events wait behind a dead letter.', ({ parkedKeys }) => parkedKeys)
  metrics
    .gauge({
      name: 'aftercommit_dlq_size',
      help: 'Dead letters that wait for somebody, by kind and by whose they are.',
      labels: ['kind', 'owner'],
    })
    .collect(async () => (await letters()).map(({ kind, owner, count }) => ({ labels: { kind, owner }, value: count })))
}
