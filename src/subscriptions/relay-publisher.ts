/**
 * Publishes what a relay is given, with patience. What can happen, failures first:
 *
 *   the lease is gone, or a stop   nothing more is sent; the events come again to whoever has the lease next
 *   the sink is unavailable        the same messages again after a growing pause, for as long as it takes: nothing passes
 *                                  them, so that an outage leaves neither a hole nor a dead letter
 *   it fails otherwise             by the policy, then one by one, to find the message that fails while others pass. That
 *                                  one is refused: the runner halves the batch until it is alone and makes it a letter
 *   it fails for everybody         as if it were unavailable
 *   accepted                       noted, then the checkpoint moves
 *
 * While it struggles it remembers what was accepted, so that the halves of a batch do not send it a second time.
 */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { backoffDelay, type Clock, type Logger } from '../runtime/index.ts'
import type { Definition, HandlerContext } from './definition.ts'
import { decidePublish } from './relay-failure.ts'
import { type Failure, type Known, separate } from './relay-separate.ts'
import { insertBatch, selectTerm } from './relay-statements.ts'
import type { Sink, SinkMessage } from './sink.ts'
import { callSink } from './sink-call.ts'
import { saveStatus } from './statements.ts'
import { GiveUp } from './words.ts'

export interface PublisherParts {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly process: string
  readonly sink: Sink
  /** For one call of the sink. */
  readonly timeoutMs: number
  readonly toMessage: (event: AnyEvent) => SinkMessage
  /** Looked at when it is needed: the definition has the publisher as its handler. */
  readonly definition: () => Definition
}

/** What is known of a batch that failed, under one term. */
interface Struggle extends Known {
  readonly term: bigint
  /** The last position of the batch. */
  readonly until: bigint
}

/** How long it takes at most to notice, in a pause, that somebody else has the lease. */
const LOOK_MS = 1_000

export class Publisher {
  readonly #parts: PublisherParts
  #stopping = new AbortController()
  #struggle: Struggle | undefined
  #unwell = false

  constructor(parts: PublisherParts) {
    this.#parts = parts
  }

  /** Ends a pause. What is being sent may finish. */
  interrupt(): void {
    this.#stopping.abort()
  }

  /** After an interruption. */
  resume(): void {
    if (this.#stopping.signal.aborted) this.#stopping = new AbortController()
  }

  /** Resolves when the sink has accepted all of them. */
  async publish(events: readonly AnyEvent[], { signal, redriven }: HandlerContext): Promise<void> {
    if (redriven) return this.#send(events, signal)
    const struggle = await this.#recall(events, signal)
    if (struggle) {
      this.#rejectRefused(struggle, events)
      const left = events.filter(({ position }) => !struggle.accepted.has(position))
      if (left.length > 0) await this.#strive(left, struggle, undefined, signal)
      return
    }
    const failure = await this.#attempt(events, signal)
    if (failure === undefined) return
    const term = await this.#ownTerm(signal)
    this.#struggle = { term, until: events.at(-1)!.position, accepted: new Set(), refused: new Map() }
    await this.#strive(events, this.#struggle, failure, signal)
  }

  /** The struggle that these events are part of. One of another term is over, whatever it knew. */
  async #recall(events: readonly AnyEvent[], signal: AbortSignal): Promise<Struggle | undefined> {
    const struggle = this.#struggle
    if (struggle === undefined) return undefined
    if (events[0]!.position <= struggle.until && (await this.#ownTerm(signal)) === struggle.term) return struggle
    this.#struggle = undefined
    return undefined
  }

  /** Sends until all are accepted; throws when one was refused or the lease is gone. */
  async #strive(
    events: readonly AnyEvent[],
    struggle: Struggle,
    first: Failure | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { retry, keyOf, onFailure } = this.#parts.definition()
    let left = events
    let failure = first ?? (await this.#attempt(left, signal))
    for (let tries = 0, outages = 0; failure !== undefined; failure = await this.#attempt(left, signal)) {
      const verdict = decidePublish(failure.error, { tries, outages }, retry)
      if (verdict.kind === 'wait') {
        tries += verdict.counts ? 1 : 0
        outages = verdict.counts ? 0 : outages + 1
        await this.#pause(verdict.delayMs, failure.error, left, struggle, signal)
        continue
      }
      const outcome = await separate(left, failure, struggle, {
        attempt: (event) => this.#attempt([event], signal),
        keyOf,
        stops: onFailure === 'stop',
      })
      left = left.filter(({ position }) => !struggle.accepted.has(position))
      if (outcome === 'accepted') return
      if (outcome === 'refused') this.#rejectRefused(struggle, events)
      tries = 0
      outages++
      await this.#pause(backoffDelay(outages, retry), failure.error, left, struggle, signal)
    }
  }

  /** Alone, a refused event is given up; in a batch, the batch has to be halved. */
  #rejectRefused({ refused }: Struggle, events: readonly AnyEvent[]): void {
    const culprit = events.find(({ position }) => refused.has(position))
    if (culprit === undefined) {
      const stops = this.#parts.definition().onFailure === 'stop'
      if (stops && [...refused.keys()].some((position) => position < events[0]!.position)) throw this.#gone()
      return
    }
    const error = refused.get(culprit.position)
    if (events.length > 1 || error instanceof GiveUp) throw error
    throw new GiveUp(error instanceof Error ? error.message : 'the sink refused the message', { cause: error })
  }

  async #attempt(events: readonly AnyEvent[], signal: AbortSignal): Promise<Failure | undefined> {
    try {
      await this.#send(events, signal)
      return undefined
    } catch (error) {
      if (signal.aborted) throw error
      return { error }
    }
  }

  async #send(events: readonly AnyEvent[], signal: AbortSignal): Promise<void> {
    const { database, logger, toMessage } = this.#parts
    const relay = this.#parts.definition().id
    await callSink(this.#parts, events.map(toMessage), signal)
    try {
      await insertBatch(
        database.control,
        relay,
        events.map(({ position }) => position),
      )
      if (this.#unwell) await saveStatus(database.control, relay, 'active', null)
      this.#unwell = false
    } catch (error) {
      // It was accepted: to say otherwise would send it again.
      logger.warn({ subscription: relay, err: error }, 'published, but not noted; the outbox view does not show it')
    }
  }

  /** Waits before the next call, as long as the lease is ours. */
  async #pause(
    delayMs: number,
    error: unknown,
    events: readonly AnyEvent[],
    struggle: Struggle,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, database, logger, sink } = this.#parts
    const relay = this.#parts.definition().id
    const fields = { subscription: relay, sink: sink.name, events: events.length, err: error }
    logger.warn({ ...fields, delay_ms: Math.round(delayMs) }, 'sink failed; the batch is sent again')
    if (!this.#unwell) {
      this.#unwell = true
      await saveStatus(database.control, relay, 'failing', `sink "${sink.name}" does not accept events`).catch(() => {})
    }
    const until = clock.monotonic() + delayMs
    const waiting = AbortSignal.any([signal, this.#stopping.signal])
    do {
      const leftMs = Math.min(LOOK_MS, Math.max(0, until - clock.monotonic()))
      await clock.sleep(leftMs, waiting).catch(() => {})
      if ((await this.#ownTerm(signal)) !== struggle.term) throw this.#gone()
    } while (clock.monotonic() < until)
  }

  /** The term under which this process holds the lease. A database that is away leaves it open: it is asked again. */
  async #ownTerm(signal: AbortSignal): Promise<bigint> {
    const { clock, database, process } = this.#parts
    const waiting = AbortSignal.any([signal, this.#stopping.signal])
    while (!waiting.aborted) {
      try {
        const term = await selectTerm(database.control, this.#parts.definition().id, process)
        if (term !== undefined) return term
        break
      } catch {
        await clock.sleep(LOOK_MS, waiting).catch(() => {})
      }
    }
    throw this.#gone()
  }

  #gone(): AftercommitError {
    const { id } = this.#parts.definition()
    return new AftercommitError(
      'LEASE_LOST',
      `Relay "${id}" was stopped, paused or lost its lease, so nothing more was published.`,
    )
  }
}
