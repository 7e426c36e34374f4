/**
 * Calling the handler of one hook: so many keys at once, each in order, within its time. A call that fails is tried again
 * by the policy; what cannot be handled is told to whoever owns the hook. A call that goes on after its time keeps its key
 * until it has ended, 30 s at most, so that two calls of a key never run side by side.
 */
import { AftercommitError } from '../errors.ts'
import { type EventDefinitions, isUndecodable } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import type { Commits } from '../postgres/index.ts'
import { backoffDelay, type Clock, createThrottledLog, isThenable, type Logger, withTimeout } from '../runtime/index.ts'
import { afterFailure, causedBy, decideFailure, streakFields } from '../subscriptions/index.ts'
import { errorKind } from './error-kind.ts'
import type { Hook } from './hook.ts'
import { HookCall } from './hook-call.ts'
import { type Item, Lanes } from './lanes.ts'
import type { HookMetrics } from './metrics.ts'

export interface HookCallsOptions {
  readonly hook: Hook
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: HookMetrics
  readonly definitions: EventDefinitions | undefined
  /** By this process: evidence that a failure is not the database's. */
  readonly commits: Readonly<Commits>
  /** Aborted when the hook is being stopped. */
  readonly stopping: () => AbortSignal
  /** Whether a call may start now. */
  readonly mayStart: () => boolean
  /** A call succeeded, and what could follow at once has been started. */
  readonly onSuccess: () => void
  /** Something else is due, or a key is free again. */
  readonly onChange: () => void
  readonly onFailure: () => void
  /** An event cannot be handled, after all its attempts. True: its loss is made up for. */
  readonly onDead: () => boolean
}

/** Events taken and not finished, at most. */
const WINDOW = 1_000
const LINGER_MS = 30_000

export class HookCalls {
  readonly #options: HookCallsOptions
  readonly #logRepeatedly
  /** Whatever of a call may still be running. */
  readonly #calls = new Set<HookCall>()
  /** Keys whose event is tried until it succeeds and has failed. */
  readonly #failing = new Set<string>()
  #lanes: Lanes
  /** Calls whose time is not up. */
  #active = 0
  handled = 0
  failed = 0

  constructor(options: HookCallsOptions) {
    this.#options = options
    this.#lanes = new Lanes(options.hook.settling)
    this.#logRepeatedly = createThrottledLog({ logger: options.logger, clock: options.clock })
  }

  /** How many more events can be taken. */
  get room(): number {
    return Math.max(0, WINDOW - this.#lanes.size)
  }

  get isFailing(): boolean {
    return this.#failing.size > 0
  }

  /** Whether a call is under way whose time is not up. */
  get isActive(): boolean {
    return this.#active > 0
  }

  /** Whether anything that was called may still be running. */
  get isRunning(): boolean {
    return this.#calls.size > 0
  }

  isDoneUpTo(position: bigint): boolean {
    return this.#lanes.isDoneUpTo(position)
  }

  /** Until the next event that only waits for its time; infinity when a call has to end first. */
  nextDueInMs(): number {
    if (this.#active >= this.#options.hook.concurrency) return Number.POSITIVE_INFINITY
    return this.#lanes.nextDueMs() - this.#options.clock.monotonic()
  }

  take(events: readonly AnyEvent[]): void {
    const { hook, clock } = this.#options
    const now = clock.monotonic()
    for (const event of events) if (hook.matches(event)) this.#lanes.add(event, this.#keyOf(event), now)
  }

  /** Starts what may start. */
  pump(): void {
    const { hook, clock, mayStart } = this.#options
    while (this.#active < hook.concurrency && mayStart()) {
      const item = this.#lanes.begin(clock.monotonic())
      if (item === undefined) return
      this.#call(item)
    }
  }

  abort(reason: unknown): void {
    for (const call of this.#calls) call.abort(reason)
  }

  /** Forgets what waits. Nothing may be running. */
  clear(): void {
    this.#lanes = new Lanes(this.#options.hook.settling)
    this.#failing.clear()
  }

  /** With the payload in its newest form. */
  readable(event: AnyEvent): AnyEvent {
    if (isUndecodable(event)) {
      throw new AftercommitError('UNDECODABLE', `The stored payload of event "${event.id}" cannot be read.`)
    }
    return liftEvent(this.#options.definitions, event)
  }

  /** A key that cannot be told is the fault of the event, not of the reader. */
  #keyOf(event: AnyEvent): string {
    try {
      return String(this.#options.hook.keyOf(event))
    } catch (error) {
      this.#logRepeatedly('error', 'key', this.#fields(event, error), 'the key of a hook threw; the aggregate is used')
      return event.key
    }
  }

  #call(item: Item): void {
    const { hook, commits } = this.#options
    item.faults?.begin(commits)
    const call = new HookCall(hook.name, item.event, item.attempts + 1, item.coalesced)
    let called: unknown
    try {
      called = causedBy(item.event, () => hook.handle(this.readable(item.event), call))
    } catch (error) {
      this.#fail(item, error)
      return
    }
    if (isThenable(called)) this.#watch(item, call, Promise.resolve(called))
    else this.#succeed(item)
  }

  #watch(item: Item, call: HookCall, ended: Promise<unknown>): void {
    const { hook, clock, metrics, onSuccess, onChange } = this.#options
    const began = clock.monotonic()
    this.#active++
    this.#calls.add(call)
    const over = () => {
      this.#active--
      metrics.seconds.observe((clock.monotonic() - began) / 1_000)
      this.pump()
    }
    withTimeout(ended, hook.timeoutMs, clock, `Hook "${hook.name}" did not finish event "${item.event.id}"`).then(
      () => {
        this.#calls.delete(call)
        this.#succeed(item)
        over()
        onSuccess()
      },
      (error) => {
        call.abort(error)
        this.#holdWhile(ended, call, this.#lanes.hold(item.key))
        this.#fail(item, error)
        over()
        onChange()
      },
    )
  }

  /** Its key waits for a call that was given up, unless the hook is being stopped: its process must not stay for that. */
  #holdWhile(ended: Promise<unknown>, call: HookCall, letGo: () => void): void {
    const release = () => {
      letGo()
      this.#calls.delete(call)
      this.#options.onChange()
    }
    const { clock, stopping } = this.#options
    const enough = new AbortController()
    const rest = clock.sleep(LINGER_MS, AbortSignal.any([enough.signal, stopping()])).catch(() => {})
    void Promise.race([ended.catch(() => {}), rest]).then(() => {
      enough.abort()
      release()
    })
  }

  #succeed(item: Item): void {
    this.handled++
    this.#options.metrics.ok.inc()
    this.#failing.delete(item.key)
    this.#lanes.finish(item)
  }

  #fail(item: Item, error: unknown): void {
    const { hook, clock, metrics, commits, onFailure, onDead } = this.#options
    const attempt = item.attempts + 1
    const fields = { ...this.#fields(item.event, error), attempt }
    this.failed++
    metrics.failed.inc()
    onFailure()
    const tried = { error, attempt, byHandler: true, connectionLost: false, ...streakFields(item.faults) }
    const verdict = decideFailure(tried, hook.retry)
    if (isUndecodable(item.event)) {
      // No attempt can succeed, also not one of a hook that repeats until it is done.
      this.#lanes.finish(item)
      this.#logRepeatedly('error', 'undecodable', fields, 'an event cannot be read, so a hook passes it')
      return
    }
    if (verdict.kind === 'dead' && !hook.untilDone) {
      this.#lanes.finish(item)
      const what = `a hook could not handle an event; ${onDead() ? 'it loads anew' : 'the event is passed'}`
      this.#logRepeatedly('error', `dead ${errorKind(error)}`, fields, what)
      return
    }
    const counts = verdict.kind === 'dead' || verdict.counts
    const delayMs = verdict.kind === 'retry' ? verdict.delayMs : backoffDelay(attempt, hook.retry)
    item.faults = afterFailure(item.faults, verdict, commits)
    item.attempts += counts ? 1 : 0
    if (hook.untilDone) this.#failing.add(item.key)
    this.#lanes.retry(item, clock.monotonic() + delayMs)
    const what = 'a hook failed and is tried again'
    this.#logRepeatedly('warn', `retry ${errorKind(error)}`, { ...fields, delay_ms: delayMs }, what)
  }

  #fields({ id, type, metadata, traceId }: AnyEvent, error: unknown): Record<string, unknown> {
    const { correlationId } = metadata
    const event = { event_id: id, event_type: type, correlation_id: correlationId, trace_id: traceId }
    return { hook: this.#options.hook.name, ...event, err: error }
  }
}
