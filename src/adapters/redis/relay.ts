/**
 * Word of events between the instances of an application: docs/decisions/0014. One process of the cluster publishes a
 * short message for each event. Every message on the channel, and every connection that is made anew, makes a process look
 * at the log now; the content is never read. A message that is lost, repeated or forged changes nothing but the time at
 * which a process looks, and no message keeps a process from looking.
 */
import type { HookRelay, RelayHost } from '../../hooks/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import { channelOf, checkChannel, subscriptionIdOf } from './address.ts'
import { loadClient } from './connection.ts'
import { createEar, type Ear } from './ear.ts'
import { createRelayMetrics, type RelayMetrics } from './metrics.ts'
import { createPool, type Pool } from './pool.ts'
import { publish } from './publish.ts'
import { RedisError } from './redis-error.ts'
import type { RedisRelayOptions } from './relay-options.ts'
import { isEnabled, type RelaySettings, toRelaySettings } from './relay-options.ts'

const NAME = 'redis'
/** Where the database rings nobody, the process that publishes looks this often, so that the others need not. */
const LOOK_MS = 20

export function redisRelay(options: RedisRelayOptions): HookRelay {
  const settings = toRelaySettings(options)
  let running: RunningRelay | undefined
  return {
    name: NAME,
    async start(host) {
      if (!isEnabled(options)) return
      await loadClient()
      running = new RunningRelay(settings, host)
      await running.start()
    },
    async stop() {
      await running?.stop()
      running = undefined
    },
  }
}

class RunningRelay {
  readonly #host: RelayHost
  readonly #channel: string
  readonly #pool: Pool
  readonly #ear: Ear
  readonly #metrics: RelayMetrics
  readonly #away = new Map<'hearing' | 'publishing', RedisError>()
  /** While this process is the one that publishes. */
  #publishing: AbortSignal | undefined
  #cancelLook: () => void = () => {}

  constructor({ url, timeoutMs, poolSize, channel }: RelaySettings, host: RelayHost) {
    const { clock, logger, metrics, schema } = host
    this.#host = host
    this.#channel = checkChannel(channel ?? channelOf(schema), 'A Redis relay')
    this.#metrics = createRelayMetrics(metrics)
    this.#pool = createPool({ url, timeoutMs, poolSize, clock })
    this.#ear = createEar({
      ...{ url, timeoutMs, clock, logger, channel: this.#channel },
      onMessage: () => this.#hear(),
      onListening: () => this.#listening(),
      onAway: (error) => this.#tell('hearing', error),
    })
  }

  async start(): Promise<void> {
    this.#tell('hearing', new RedisError('CONNECTING'))
    this.#host.publishFrom({
      id: subscriptionIdOf(this.#channel),
      onChosen: (over) => this.#chosen(over),
      publish: (events) => this.#publish(events),
    })
    await this.#ear.start()
  }

  async stop(): Promise<void> {
    this.#cancelLook()
    await this.#ear.stop()
    this.#pool.close()
    this.#metrics.connected.set(0)
    this.#host.health.forget(NAME)
  }

  async #publish(events: readonly AnyEvent[]): Promise<void> {
    const { process, place } = this.#host
    const publication = { channel: this.#channel, ...place(), origin: process, events }
    try {
      await this.#pool.call((client) => publish(client, publication))
    } catch (error) {
      this.#tell('publishing', error as RedisError)
      throw error
    }
    this.#tell('publishing', undefined)
    this.#metrics.published.inc(events.length)
  }

  #hear(): void {
    this.#metrics.heard.inc()
    this.#host.nudge()
  }

  /** What was published while it was away is in the log. */
  #listening(): void {
    this.#tell('hearing', undefined)
    this.#host.nudge()
  }

  #chosen(over: AbortSignal): void {
    this.#publishing = over
    // Another process publishes then: that it failed here no longer counts.
    over.addEventListener('abort', () => this.#tell('publishing', undefined), { once: true })
    this.#cancelLook()
    this.#look()
  }

  #look(): void {
    const { clock, isRung, nudge } = this.#host
    if (this.#publishing?.aborted !== false) return
    if (!isRung()) nudge()
    this.#cancelLook = clock.setTimer(LOOK_MS, () => this.#look())
  }

  /** Ready when it hears and, where it publishes, is heard. */
  #tell(what: 'hearing' | 'publishing', error: RedisError | undefined): void {
    if (error === undefined) this.#away.delete(what)
    else this.#away.set(what, error)
    const [reason] = this.#away.values()
    this.#metrics.connected.set(reason === undefined ? 1 : 0)
    this.#host.health.report(
      reason === undefined
        ? { name: NAME, live: true, ready: true }
        : { name: NAME, live: true, ready: false, reason: `redis is not reachable (${reason.reason})` },
    )
  }
}
