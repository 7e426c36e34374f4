/** The relays of an instance: connected, started and stopped with the hooks. */
import { AftercommitError } from '../errors.ts'
import { type SubscriptionHandle, type SubscriptionsPart, toDefinition } from '../subscriptions/index.ts'
import type { HookRelay, RelayHost, RelayPublisher } from './hook-relay.ts'
import type { HookParts } from './instance-hook.ts'

export interface RelaysParts extends HookParts {
  readonly process: string
  readonly subscriptions: Pick<SubscriptionsPart, 'register'>
}

export interface ConnectedRelays {
  connect(relay: HookRelay): void
  start(): Promise<void>
  stop(): Promise<void>
}

const RETRY = { initialDelay: '100ms', maxDelay: '5s' } as const
const BATCH = 200

export function createRelays(parts: RelaysParts): ConnectedRelays {
  const { clock, logger, metrics, health, tailer, database, subscriptions } = parts
  const relays = new Map<HookRelay, SubscriptionHandle[]>()
  let started = false

  function hostOf(relay: HookRelay): RelayHost {
    return {
      ...{ process: parts.process, schema: database.schemaName.name, clock, logger, metrics, health },
      place: () => ({ epoch: tailer.epoch, position: tailer.frontier }),
      isRung: () => tailer.status().state === 'armed',
      nudge: () => tailer.ring(),
      publishFrom: (publisher) => void relays.get(relay)?.push(subscriptions.register(toSubscription(publisher))),
    }
  }

  /** With a new list each time: what the last start has published from was ended with it. */
  async function startOne(relay: HookRelay): Promise<void> {
    relays.set(relay, [])
    await relay.start(hostOf(relay))
  }

  async function stopOne([relay, publishers]: [HookRelay, readonly SubscriptionHandle[]]): Promise<void> {
    for (const publisher of publishers) await publisher.stop()
    await relay.stop()
  }

  return {
    connect(relay) {
      if ([...relays.keys()].some(({ name }) => name === relay.name)) {
        throw new AftercommitError('BAD_OPTION', `Relay "${relay.name}" is connected twice; the second was refused.`)
      }
      relays.set(relay, [])
      if (!started) return
      // Nobody waits for it: what is wrong shows in the log, and the instance is not ready.
      startOne(relay).catch((error) => {
        logger.error({ relay: relay.name, err: error }, 'a relay could not start')
        health.report({ name: relay.name, live: true, ready: false, reason: `relay ${relay.name} could not start` })
      })
    },
    async start() {
      started = true
      await Promise.all([...relays.keys()].map(startOne))
    },
    async stop() {
      if (!started) return
      started = false
      await Promise.all([...relays].map(stopOne))
    },
  }
}

/**
 * A bus that is away is waited for, however long: word that comes late is better than a dead letter. All events have one
 * key, so an event that waits holds up later ones and order is kept.
 */
function toSubscription({ id, onChosen, publish }: RelayPublisher) {
  return toDefinition(
    {
      id,
      from: 'head',
      key: () => 'all',
      retry: RETRY,
      // Only an event that this release cannot read becomes a dead letter, and it must not hold up the rest.
      onFailure: 'skip',
      batchSize: BATCH,
      handleBatch: publish,
    },
    { begin: async (over) => onChosen(over), isUnavailable: () => true },
  )
}
