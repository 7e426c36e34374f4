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
import { backoffDelay, type Clock, createWaker, type Logger, type Waker } from '../runtime/index.ts'
import type { Definition, HandlerContext } from './definition.ts'
import { decidePublish } from './relay-failure.ts'
import { type Failure, type Known, separate } from './relay-separate.ts'
import { insertBatch, selectTerm } from './relay-statements.ts'
import type { Sink, SinkMessage } from './sink.ts'
import { callSink } from './sink-call.ts'
import { saveStatusAs } from './statements.ts'
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
  readonly #waker: Waker
  #stopped = false
  #struggle: Struggle | undefined
  #unwell = false

  constructor(parts: PublisherParts) {
    this.#parts = parts
    this.#waker = createWaker(parts.clock)
  }

  /** Ends a pause. What is being sent may finish. */
  interrupt(): void {
    this.#stopped = true
    this.#waker.wake()
  }

  /** After an interruption. */
  resume(): void {
    this.#stopped = false
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
        if (!verdict.counts) await this.#tellUnavailable()
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
      await this.#tellUnavailable()
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
    const { database, logger, toMessage, process } = this.#parts
    const relay = this.#parts.definition().id
    await callSink(this.#parts, events.map(toMessage), signal)
    try {
      await insertBatch(
        database.control,
        relay,
        events.map(({ position }) => position),
      )
      if (this.#unwell) await saveStatusAs(database.control, process, relay, 'active', null)
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
    const { clock, logger, sink } = this.#parts
    const fields = { subscription: this.#parts.definition().id, sink: sink.name, events: events.length, err: error }
    logger.warn({ ...fields, delay_ms: Math.round(delayMs) }, 'sink failed; the batch is sent again')
    const until = clock.monotonic() + delayMs
    do {
      const leftMs = Math.min(LOOK_MS, Math.max(0, until - clock.monotonic()))
      await this.#waker.wait(leftMs, signal).catch(() => {})
      if ((await this.#ownTerm(signal)) !== struggle.term) throw this.#gone()
    } while (clock.monotonic() < until)
  }

  /** Shown with the subscription until something is accepted again. */
  async #tellUnavailable(): Promise<void> {
    if (this.#unwell) return
    this.#unwell = true
    const { database, sink, process } = this.#parts
    const reason = `sink "${sink.name}" does not accept events`
    await saveStatusAs(database.control, process, this.#parts.definition().id, 'failing', reason).catch(() => {})
  }

  /** The term under which this process holds the lease. A database that is away leaves it open: it is asked again. */
  async #ownTerm(signal: AbortSignal): Promise<bigint> {
    const { database, process } = this.#parts
    while (!signal.aborted && !this.#stopped) {
      try {
        const term = await selectTerm(database.control, this.#parts.definition().id, process)
        if (term !== undefined) return term
        break
      } catch {
        await this.#waker.wait(LOOK_MS, signal).catch(() => {})
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
