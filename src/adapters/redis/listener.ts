/**
 * For processes that cannot read the log, such as caches of other services. They hear of events and not what happened;
 * whatever they may have missed is told as a gap, and a gap means: load anew.
 *
 *   queue is empty       waits for a message
 *   onEvent fails        told as a gap: what it should have done is made up for by loading
 *   onGap fails          tried until it succeeds, with a growing delay; what comes meanwhile waits
 *   too much waits       dropped, and told as one gap
 */
import { type Clock, type Duration, type Logger, retryUntil, silentLogger, systemClock } from '../../runtime/index.ts'
import { checkChannel, lastKeyOf } from './address.ts'
import { createChain, type Gap, LONGEST_MARK, type Mark, readMark } from './chain.ts'
import { connect, loadClient } from './connection.ts'
import { createEar } from './ear.ts'
import { type Message, type RedisEvent, readMessage } from './message.ts'
import { RedisError } from './redis-error.ts'
import { toRedisSettings } from './relay-options.ts'

export interface RedisListenerOptions {
  readonly url: string
  /** That of the relay: `aftercommit:<schema>:events` unless the relay was told otherwise. */
  readonly channel: string
  /** Word of one event: in order, each once. */
  readonly onEvent: (event: RedisEvent) => unknown
  /** Events between these positions were not heard. Also called when listening begins: loading is one piece of code. */
  readonly onGap: (gap: Gap) => unknown
  readonly timeout?: Duration | undefined
  readonly logger?: Logger | undefined
  readonly clock?: Clock | undefined
}

export interface RedisListener {
  /** Resolves when it listens, or has failed for the first time; it goes on either way. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Whether Redis is heard and nothing waits to be made up for. */
  readonly ready: boolean
  /** Why it is not ready. */
  readonly reason: string | null
  /** Messages that were not of ours. */
  readonly refused: number
}

type Item = { readonly kind: 'event'; readonly message: Message } | { readonly kind: 'gap'; readonly gap: Gap }

const MOST_WAITING = 10_000

export function redisListener(options: RedisListenerOptions): RedisListener {
  const { onEvent, onGap, logger = silentLogger, clock = systemClock } = options
  const channel = checkChannel(options.channel, 'A Redis listener')
  const settings = toRedisSettings(options, 'A Redis listener')
  const chain = createChain()
  let queue: Item[] = []
  let working: Promise<void> | undefined
  let stopping = new AbortController()
  let away: string | null = 'it has not started'
  let behind = false
  let refused = 0

  const ear = createEar({
    ...settings,
    ...{ clock, logger, channel },
    onMessage(text) {
      const message = readMessage(text)
      if (message === undefined) {
        refused++
        return
      }
      const { isNew, gap } = chain.hear(message)
      if (gap !== null) add({ kind: 'gap', gap })
      if (isNew) add({ kind: 'event', message })
    },
    // Read once it is subscribed, so that nothing lies between.
    async onListening() {
      const gap = chain.resume(await readLast())
      away = null
      if (gap !== null) add({ kind: 'gap', gap })
    },
    onAway({ reason }) {
      away = `redis is not reachable (${reason})`
    },
  })

  /** On a connection of its own: one that is subscribed can do nothing else. */
  async function readLast(): Promise<Mark | null> {
    const asking = await connect({ ...settings, clock })
    try {
      return readMark(await asking.call((client) => client.getRange(lastKeyOf(channel), 0, LONGEST_MARK)))
    } catch (error) {
      // The key holds another type of value. The publisher replaces it with its next message.
      if (error instanceof RedisError && error.reason === 'WRONGTYPE') return null
      throw error
    } finally {
      asking.end()
    }
  }

  function add(item: Item): void {
    if (queue.length < MOST_WAITING) queue.push(item)
    else queue = [{ kind: 'gap', gap: { from: fromOf(queue[0]!), to: toOf(item) } }]
    working ??= work(stopping.signal).finally(() => {
      working = undefined
    })
  }

  async function work(signal: AbortSignal): Promise<void> {
    for (let item = queue.shift(); item !== undefined && !signal.aborted; item = queue.shift()) {
      if (item.kind === 'gap') await makeUpFor(item.gap, signal)
      else await tell(item.message, signal)
    }
  }

  async function tell({ origin: _, previous, ...event }: Message, signal: AbortSignal): Promise<void> {
    try {
      await onEvent(event)
    } catch (error) {
      logger.error({ event_id: event.id, err: error }, 'a listener failed for an event, which it is told of as a gap')
      await makeUpFor({ from: previous, to: event.position }, signal)
    }
  }

  async function makeUpFor(gap: Gap, signal: AbortSignal): Promise<void> {
    behind = true
    if (signal.aborted) return
    const onRetry = (error: unknown) =>
      logger.error({ err: error }, 'a listener could not make up for a gap and tries again')
    await retryUntil(() => onGap(gap), { clock, signal, onRetry }).then(
      () => {
        behind = false
      },
      // Only a stop ends the repeating.
      () => {},
    )
  }

  return {
    async start() {
      await loadClient()
      stopping = new AbortController()
      await ear.start()
    },
    async stop() {
      stopping.abort()
      await ear.stop()
      await working
      queue = []
      away = 'it was stopped'
    },
    get ready() {
      return away === null && !behind
    },
    get reason() {
      return away ?? (behind ? 'what was missed is not loaded yet' : null)
    },
    get refused() {
      return refused
    },
  }
}

function fromOf(item: Item): bigint | null {
  return item.kind === 'gap' ? item.gap.from : item.message.previous
}

function toOf(item: Item): bigint | null {
  return item.kind === 'gap' ? item.gap.to : item.message.position
}
