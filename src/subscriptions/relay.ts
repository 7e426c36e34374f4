/**
 * The outbox to any bus: a relay is a subscription whose handler is a sink. Its events reach the sink in the order of the
 * log, at least once, from one process of the cluster at a time; what the sink refuses is parked like everywhere else.
 */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent, StartPoint } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import {
  type Clock,
  createLoop,
  type Duration,
  type Health,
  type Logger,
  type Registry,
  type RetryOptions,
  type Service,
  toMs,
} from '../runtime/index.ts'
import { type Definition, toDefinition } from './definition.ts'
import type { SubscriptionHandle } from './handle.ts'
import { Progress } from './progress.ts'
import { publishOnce } from './relay-once.ts'
import { Publisher } from './relay-publisher.ts'
import { deleteBatches, deleteOldBatches, selectProgress } from './relay-statements.ts'
import { type Sink, toMessage } from './sink.ts'
import type { SubscriptionsPart } from './subscriptions.ts'

export interface RelayOptions {
  /** Stable over releases: the checkpoint is kept under it. */
  readonly id: string
  readonly to: Sink
  /** Patterns of types; every event unless told. */
  readonly on?: readonly string[] | undefined
  readonly tenant?: string | undefined
  /** What order and parking go by, and the key of the messages; the aggregate unless told. */
  readonly key?: ((event: AnyEvent) => string) | undefined
  /** Messages per call of the sink, at most; 100 unless told. */
  readonly batchSize?: number | undefined
  /** How often to look for events where the database cannot wake us; 100 ms unless told. */
  readonly pollInterval?: Duration | undefined
  /** 4 attempts, 1 s doubling to 60 s, unless told. A sink that is unavailable uses up none. */
  readonly retry?: RetryOptions | undefined
  /** For an event that the sink refuses: `'park'`, `'skip'` or `'stop'`. */
  readonly onFailure?: 'park' | 'skip' | 'stop' | undefined
  /** Where a new relay begins; `'start'` unless told. */
  readonly from?: StartPoint | undefined
  /** For one call of the sink; 30 s unless told. */
  readonly timeout?: Duration | undefined
  /** How long it is remembered what was published when; 7 unless told. */
  readonly retentionDays?: number | undefined
  /** The `source` of the CloudEvents, a URI. */
  readonly source?: string | undefined
}

export interface RelayHandle extends SubscriptionHandle {
  /** Final events that were not published yet, oldest first; 100 unless told. */
  pending(limit?: number): Promise<AnyEvent[]>
  /**
   * Without `start()`: publishes one batch and answers how many events it had. 0 when there is nothing to do, or when
   * the relay is run by somebody. Rejects with what the sink says.
   */
  pollOnce(): Promise<number>
  /** Forgets what was published before a time; nothing is published again for it. */
  prune(before: Date): Promise<number>
}

export interface RelayDefaults {
  readonly pollIntervalMs: number
  readonly batchSize: number
  readonly retentionDays: number
}

export interface RelaysOptions {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  readonly process: string
  readonly defaults: RelayDefaults
  readonly subscriptions: Pick<SubscriptionsPart, 'register'>
  readonly read: (definition: Definition, after: bigint, limit: number) => Promise<AnyEvent[]>
  /** Look at the log now, if the database cannot wake us. */
  readonly look: () => void
}

export interface Relays {
  register(options: RelayOptions): RelayHandle
  /** Looks at the log every so often where there is no bell. */
  readonly service: Service
  /** Ends the pauses of relays whose sink is away, so that what runs them can end. */
  interrupt(): void
  /** Upkeep: forgets old batches. */
  prune(): Promise<void>
  /** Closes every sink. */
  close(): Promise<void>
}

/** The publisher has patience of its own and a time for each call: the runner's clock must not end it. */
const PATIENCE = '20d'
const WITHOUT_RELAYS_MS = 60_000

interface Relay {
  readonly id: string
  readonly sink: Sink
  readonly publisher: Publisher
  readonly pollMs: number
  readonly retentionDays: number
}

export function createRelays(options: RelaysOptions): Relays {
  const { database, clock, logger, metrics, health, process, defaults, look } = options
  const relays: Relay[] = []

  const loop = createLoop({
    name: 'relay poll',
    clock,
    logger,
    metrics,
    health,
    async run({ wait }) {
      for (;;) {
        await wait(Math.min(WITHOUT_RELAYS_MS, ...relays.map(({ pollMs }) => pollMs)))
        if (relays.length > 0) look()
      }
    },
  })

  function register(relay: RelayOptions): RelayHandle {
    const {
      id,
      to: sink,
      pollInterval,
      timeout = '30s',
      retentionDays = defaults.retentionDays,
      source,
      ...rest
    } = relay
    checkSink(id, sink)
    const sourceOf = source ?? `urn:aftercommit:${encodeURIComponent(database.schemaName.name)}`
    const timeoutMs = toMs(timeout, `${id}.timeout`)
    const parts = {
      database,
      clock,
      logger,
      process,
      sink,
      timeoutMs,
      toMessage: (event: AnyEvent) => toMessage(event, definition.keyOf(event), sourceOf),
    }
    const publisher = new Publisher({ ...parts, definition: () => definition })
    const definition: Definition = toDefinition(
      {
        ...rest,
        id,
        batchSize: rest.batchSize ?? defaults.batchSize,
        timeout: PATIENCE,
        // One small write per batch, so that a crash repeats one batch at most.
        checkpoint: 'sync',
        handleBatch: (events, context) => publisher.publish(events, context),
      },
      'relay',
    )
    const pollMs =
      pollInterval === undefined ? defaults.pollIntervalMs : Math.max(1, toMs(pollInterval, `${id}.pollInterval`))
    const handle = options.subscriptions.register(definition)
    relays.push({ id, sink, publisher, pollMs, retentionDays: checkDays(id, retentionDays) })
    loop.wake()
    return {
      ...handle,
      async stop() {
        const ended = handle.stop()
        publisher.interrupt()
        await ended
      },
      pending: (limit = 100) => readPending(definition, limit),
      pollOnce: () => publishOnce(definition, { ...parts, read: options.read }),
      prune: (before) => deleteBatches(database, id, before),
    }
  }

  async function readPending(definition: Definition, limit: number): Promise<AnyEvent[]> {
    const known = await selectProgress(database, definition.id)
    const progress = new Progress(known?.position ?? 0n, known?.done ?? '{}')
    const pending: AnyEvent[] = []
    for (let after = progress.scanned; pending.length < limit; ) {
      const page = await options.read(definition, after, limit)
      pending.push(...page.filter(({ position }) => !progress.wasFinished(position)))
      if (page.length < limit) break
      after = page.at(-1)!.position
    }
    return pending.slice(0, limit)
  }

  return {
    register,
    service: {
      name: loop.name,
      get state() {
        return loop.state
      },
      async start() {
        for (const { publisher } of relays) publisher.resume()
        await loop.start()
      },
      stop: () => loop.stop(),
    },
    interrupt() {
      for (const { publisher } of relays) publisher.interrupt()
    },
    async prune() {
      for (const { id, retentionDays } of relays) await deleteOldBatches(database.control, id, retentionDays)
    },
    async close() {
      for (const { sink } of relays) {
        try {
          await sink.close?.()
        } catch (error) {
          logger.warn({ sink: sink.name, err: error }, 'a sink could not be closed')
        }
      }
    },
  }
}

function checkSink(id: string, sink: Sink): void {
  if (typeof sink?.publish === 'function' && typeof sink.name === 'string') return
  throw new AftercommitError(
    'BAD_OPTION',
    `Relay "${id}" needs a sink with a name and a publish function in \`to\`, so it was not registered.`,
  )
}

function checkDays(id: string, days: number): number {
  if (Number.isSafeInteger(days) && days >= 1 && days <= 36_500) return days
  throw new AftercommitError(
    'BAD_OPTION',
    `Relay "${id}" needs whole \`retentionDays\` from 1 to 36500, so it was not registered.`,
  )
}
