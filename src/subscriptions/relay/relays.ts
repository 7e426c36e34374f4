/**
 * The outbox to any bus: a relay is a subscription whose handler is a sink. Its events reach the sink in the order of the
 * log, at least once, from one process of the cluster at a time; what the sink refuses is parked like everywhere else.
 */
import { defaultSource } from '../../events/index.ts'
import { type AnyEvent, findPosition, settledPosition } from '../../log/index.ts'
import type { Database } from '../../postgres/index.ts'
import { createLoop, type PartOptions, type Service, toMs } from '../../runtime/index.ts'
import { assertOpenId, type Definition, toDefinition } from '../definition.ts'
import { Progress } from '../progress.ts'
import type { SubscriptionsPart } from '../subscriptions.ts'
import { longestCallMs } from './call-sink.ts'
import { checkDays, checkSink, type RelayDefaults, type RelayHandle, type RelayOptions } from './options.ts'
import { publish } from './publish.ts'
import { publishOnce } from './publish-once.ts'
import { isUnavailable, type Sink, toMessage } from './sink.ts'
import { deleteBatches, deleteOldBatches, selectProgress } from './statements.ts'

export interface RelaysOptions extends PartOptions {
  readonly database: Database
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
  /** Upkeep: forgets old batches. */
  prune(): Promise<void>
  /** Closes every sink. */
  close(): Promise<void>
}

/** The sink has a time for each call; the runner ends a call only if that did not. */
const SPARE_MS = 1_000
const WITHOUT_RELAYS_MS = 60_000

interface Relay {
  readonly id: string
  readonly sink: Sink
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
    } = assertOpenId(relay)
    checkSink(id, sink)
    checkDays(id, retentionDays)
    const sourceOf = source ?? defaultSource(database.schemaName.name)
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
    const definition: Definition = toDefinition(
      {
        ...rest,
        id,
        batchSize: rest.batchSize ?? defaults.batchSize,
        timeout: `${longestCallMs(timeoutMs) + SPARE_MS}ms`,
        // One small write per batch, so that a crash repeats one batch at most.
        checkpoint: 'sync',
        handleBatch: (events, { signal }) => publish(id, events, signal, parts),
      },
      { kind: 'relay', isUnavailable },
    )
    const pollMs =
      pollInterval === undefined ? defaults.pollIntervalMs : Math.max(1, toMs(pollInterval, `${id}.pollInterval`))
    const handle = options.subscriptions.register(definition)
    relays.push({ id, sink, pollMs, retentionDays })
    loop.wake()
    return {
      ...handle,
      pending: (limit = 100) => readPending(definition, limit),
      pollOnce: () => publishOnce(definition, { ...parts, read: options.read }),
      prune: (before) => deleteBatches(database, id, before),
    }
  }

  async function readPending(definition: Definition, limit: number): Promise<AnyEvent[]> {
    const { position, done } = (await selectProgress(database, definition.id)) ?? (await beginning(definition))
    const progress = new Progress(position, done)
    const pending: AnyEvent[] = []
    for (let after = progress.scanned; pending.length < limit; ) {
      const page = await options.read(definition, after, limit)
      pending.push(...page.filter(({ position }) => !progress.wasFinished(position)))
      if (page.length < limit) break
      after = page.at(-1)!.position
    }
    return pending.slice(0, limit)
  }

  /** Of a relay that never ran. */
  async function beginning({ from }: Definition): Promise<{ position: bigint; done: string }> {
    return { position: await findPosition(database, from, await settledPosition(database)), done: '{}' }
  }

  return {
    register,
    service: loop,
    async prune() {
      for (const { id, retentionDays } of relays) await deleteOldBatches(database.control, id, retentionDays)
    },
    async close() {
      for (const sink of new Set(relays.map((relay) => relay.sink))) {
        try {
          await sink.close?.()
        } catch (error) {
          logger.warn({ sink: sink.name, err: error }, 'a sink could not be closed')
        }
      }
    },
  }
}
