/**
 * Word of events between the instances of an application: docs/decisions/0014. One process of the cluster publishes a
 * short message for each event; every process that hears of an event beyond what it has read looks at the log at once.
 * Nothing is taken from a message but where the log stands, so a message that is lost, repeated or forged changes
 * nothing but the time at which a process looks.
 */

import type { HookRelay, RelayHost } from '../../hooks/index.ts'
import type { AnyEvent } from '../../log/index.ts'
import { channelOf, checkChannel, subscriptionIdOf } from './address.ts'
import { createChain } from './chain.ts'
import { loadClient } from './connection.ts'
import { createEar, type Ear } from './ear.ts'
import { readMessage } from './message.ts'
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
  readonly #chain = createChain()
  readonly #away = new Map<'hearing' | 'publishing', RedisError>()
  /** Until somebody else is heard to publish. */
  #publishes = false
  #cancelLook: () => void = () => {}

  constructor({ url, timeoutMs, poolSize, channel }: RelaySettings, host: RelayHost) {
    const { clock, logger, metrics, schema } = host
    this.#host = host
    this.#channel = checkChannel(channel ?? channelOf(schema), 'A Redis relay')
    this.#metrics = createRelayMetrics(metrics)
    this.#pool = createPool({ url, timeoutMs, poolSize, clock })
    this.#ear = createEar({
      ...{ url, timeoutMs, clock, logger, channel: this.#channel },
      onMessage: (text) => this.#hear(text),
      onListening: (last) => this.#listening(this.#chain.resume(last) !== null),
      onAway: (error) => this.#tell('hearing', error),
    })
  }

  async start(): Promise<void> {
    this.#tell('hearing', new RedisError('CONNECTING'))
    this.#host.publishFrom({
      id: subscriptionIdOf(this.#channel),
      onChosen: () => this.#chosen(),
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
    const publication = { channel: this.#channel, epoch: place().epoch, origin: process, events }
    try {
      await this.#pool.call((client) => publish(client, publication))
    } catch (error) {
      this.#tell('publishing', error as RedisError)
      throw error
    }
    this.#tell('publishing', undefined)
    this.#metrics.published.inc(events.length)
    if (!this.#publishes) this.#chosen()
  }

  #hear(text: string): void {
    const message = readMessage(text)
    const heard = message && this.#chain.hear(message)
    const isOwn = message?.origin === this.#host.process
    this.#metrics[heard === undefined ? 'refused' : isOwn ? 'own' : heard.isNew ? 'heard' : 'repeated'].inc()
    if (message === undefined || heard === undefined || isOwn) return
    this.#leaveToOthers()
    if (heard.gap !== null) this.#metrics.gaps.inc()
    const { epoch, position } = this.#host.place()
    if (message.position > position || message.epoch !== epoch || heard.gap !== null) this.#host.nudge()
  }

  /** What was published while it was away is in the log. */
  #listening(hasMissed: boolean): void {
    this.#tell('hearing', undefined)
    if (hasMissed) this.#host.nudge()
  }

  /** Somebody else publishes now: that it failed here no longer counts. */
  #leaveToOthers(): void {
    this.#publishes = false
    if (this.#away.has('publishing')) this.#tell('publishing', undefined)
  }

  #chosen(): void {
    this.#publishes = true
    this.#cancelLook()
    this.#look()
  }

  #look(): void {
    const { clock, isRung, nudge } = this.#host
    if (!this.#publishes) return
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
