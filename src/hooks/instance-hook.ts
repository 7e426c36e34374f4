/**
 * One hook of scope `instance` at work: a reader of its own on the tailer of the process. What can happen, failures first:
 *
 *   the place was lost       history forked, it fell far behind, or an event could not be handled although the hook can
 *                            load anew: what waits is dropped, calls are ended, and it begins again at `loading`
 *   loading fails            tried again with a growing delay for as long as it takes; the instance is not ready
 *   an event fails           see hook-calls.ts; one that cannot be handled makes the hook load anew or, where it has
 *                            nothing to load, is passed with an error line
 *
 *   loading ──done──▶ catching up ──came to where the frontier was──▶ ready
 *
 * It stands at the frontier before it loads: what is below is visible to the load, what is above is handled after it.
 */
import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from '../events/index.ts'
import { type AnyEvent, Follower, type Tailer } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import {
  createLoop,
  createThrottledLog,
  formatDuration,
  type Loop,
  type LoopContext,
  type PartOptions,
  retryUntil,
} from '../runtime/index.ts'
import { errorKind } from './error-kind.ts'
import { readHistory } from './history.ts'
import type { Hook, HookStatus, StartReason } from './hook.ts'
import { HookCalls } from './hook-calls.ts'
import { callOnStop, loadOnce } from './loading.ts'
import { createHookMetrics, type HookMetrics } from './metrics.ts'
import { Readiness } from './readiness.ts'

export interface HookParts extends PartOptions {
  readonly database: Database
  readonly tailer: Tailer
  readonly definitions: EventDefinitions | undefined
}

const PAGE = 500
/** A page is worth reading when there is room for so many. */
const LEAST_ROOM = 250
/** Beyond this, loading everything is cheaper than going on event by event. */
const MAX_LAG = 10_000n
const STOP_MS = 5_000

export class InstanceHook {
  readonly hook: Hook
  readonly #parts: HookParts
  readonly #loop: Loop
  readonly #metrics: HookMetrics
  readonly #readiness: Readiness
  readonly #calls: HookCalls
  readonly #follower: Follower
  readonly #logRepeatedly
  #stopping = new AbortController()
  #position = 0n
  /** Why it has to load; undefined once it has. */
  #loadReason: StartReason | undefined = 'start'
  /** Where the frontier was when it had loaded; undefined once it has come there. */
  #target: bigint | undefined
  #failedLoads = 0
  #waitsForRoom = false
  /** Told when it is ready or has failed for the first time. */
  #settled: () => void = () => {}

  constructor(hook: Hook, parts: HookParts) {
    const { clock, logger, metrics, health, definitions } = parts
    this.hook = hook
    this.#parts = parts
    this.#metrics = createHookMetrics(metrics, hook.name)
    this.#readiness = new Readiness(hook, parts)
    this.#follower = new Follower(parts.tailer, { type: hook.typeExpression })
    this.#logRepeatedly = createThrottledLog({ logger, clock })
    this.#loop = createLoop({
      name: `hook ${hook.name}`,
      clock,
      logger,
      metrics,
      health,
      run: (context) => this.#run(context),
    })
    this.#calls = new HookCalls({
      hook,
      clock,
      logger,
      metrics: this.#metrics,
      definitions,
      commits: parts.database.commits,
      mayStart: () => this.#loadReason === undefined && !this.#stopping.signal.aborted,
      stopping: () => this.#stopping.signal,
      onSuccess: () => this.#hasUse() && this.#loop.wake(),
      onChange: () => this.#loop.wake(),
      onFailure: () => this.#settled(),
      onDead: () => this.#canLoad && this.#lose('failure'),
    })
  }

  /** Resolves when the hook is ready for the first time, or has failed for the first time; it goes on either way. */
  async start(): Promise<void> {
    if (!this.#isOver()) return
    this.#stopping = new AbortController()
    this.#loadReason = 'start'
    this.#readiness.tellNotReady('has not loaded yet')
    const settled = new Promise<void>((resolve) => {
      this.#settled = resolve
    })
    await this.#loop.start()
    await settled
  }

  async stop(): Promise<void> {
    if (this.#isOver()) return
    const { clock, logger } = this.#parts
    const reason = new AftercommitError('STOPPED', `Hook "${this.hook.name}" is being stopped.`)
    this.#stopping.abort(reason)
    this.#calls.abort(reason)
    await this.#loop.stop()
    const deadline = clock.monotonic() + STOP_MS
    while (this.#calls.isActive && clock.monotonic() < deadline) await clock.sleep(5)
    this.#readiness.forget()
    this.#settled()
    await callOnStop(this.hook, clock, logger)
  }

  status(): HookStatus {
    const { name, scope } = this.hook
    const { frontier } = this.#parts.tailer
    return {
      name,
      scope,
      state: this.#state(),
      ready: this.#readiness.ready,
      reason: this.#readiness.reason,
      handled: this.#calls.handled,
      failed: this.#calls.failed + this.#failedLoads,
      position: this.#position,
      lag: frontier > this.#position ? frontier - this.#position : 0n,
    }
  }

  #state(): HookStatus['state'] {
    if (this.#loop.state === 'idle' || this.#loop.state === 'stopped') return this.#loop.state
    if (this.#loadReason !== undefined) return 'loading'
    if (this.#calls.isFailing) return 'failing'
    return this.#readiness.ready ? 'ready' : 'catching up'
  }

  #isOver(): boolean {
    return this.#loop.state === 'idle' || this.#loop.state === 'stopped'
  }

  async #run(context: LoopContext): Promise<void> {
    for (;;) {
      context.signal.throwIfAborted()
      const lost = this.#lostPlace()
      if (lost !== undefined) this.#lose(lost)
      if (this.#loadReason !== undefined) await this.#load(context, this.#loadReason)
      const read = await this.#take()
      this.#calls.pump()
      this.#tell()
      context.beat()
      if (!read) await this.#rest(context)
    }
  }

  get #canLoad(): boolean {
    return this.hook.onStart !== undefined || this.hook.onResync !== undefined
  }

  #lostPlace(): StartReason | undefined {
    const { tailer } = this.#parts
    if (this.#loadReason !== undefined) return undefined
    if (this.#follower.hasLostPlace) return 'epoch'
    return this.#canLoad && tailer.frontier - this.#position > MAX_LAG ? 'lag' : undefined
  }

  /** What it holds may no longer be true: it begins anew. */
  #lose(reason: StartReason): true {
    if (this.#loadReason !== undefined) return true
    const { name } = this.hook
    const { logger } = this.#parts
    this.#loadReason = reason
    this.#metrics.resyncs.inc()
    const fields = { hook: name, reason, position: String(this.#position) }
    if (this.#canLoad) logger.warn(fields, 'a hook lost its place in the log and loads anew')
    else logger.error(fields, 'a hook lost its place in the log, has nothing to load and goes on at the head')
    this.#readiness.tellNotReady(`lost its place in the log (${reason}) and loads anew`)
    const why = `Hook "${name}" loads anew, so what this call does no longer counts.`
    this.#calls.abort(new AftercommitError('STOPPED', why))
    this.#loop.wake()
    return true
  }

  async #load(context: LoopContext, reason: StartReason): Promise<void> {
    // A call of before that ends after the load could put something old in its place.
    while (this.#calls.isRunning) await context.wait(1_000)
    this.#calls.clear()
    let over = false
    const loading = retryUntil(() => this.#loadFromHere(reason), {
      clock: this.#parts.clock,
      signal: this.#stopping.signal,
      onRetry: (error, _, delayMs) => this.#loadFailed(error, delayMs),
    })
      // Only a stop ends the repeating.
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        over = true
        this.#loop.wake()
      })
    // Waiting shows that the loop is not stuck, however long the load takes.
    while (!over) await context.wait(60_000)
    if (!(await loading)) return
    this.#loadReason = undefined
    this.#target = this.#parts.tailer.frontier
  }

  #loadFromHere(reason: StartReason): Promise<void> {
    const { tailer, clock } = this.#parts
    const standing = tailer.frontier
    this.#position = standing
    this.#follower.enterEpoch()
    const history = (options = {}) => this.#history(standing, options)
    return loadOnce(this.hook, { reason, clock, signal: this.#stopping.signal, history })
  }

  async *#history(upTo: bigint, options: Parameters<typeof readHistory>[2]): AsyncGenerator<AnyEvent, void, void> {
    for await (const event of readHistory(this.#parts, upTo, options)) yield this.#calls.readable(event)
  }

  #loadFailed(error: unknown, delayMs: number): void {
    const kind = errorKind(error)
    this.#failedLoads++
    this.#metrics.failed.inc()
    const fields = { hook: this.hook.name, delay_ms: delayMs, err: error }
    this.#logRepeatedly('error', kind, fields, 'a hook could not load and tries again')
    this.#readiness.tellNotReady(`could not load (${kind}) and tries again in ${formatDuration(delayMs)}`)
    this.#settled()
  }

  /** Whether the loop could do more than it did before a call succeeded: otherwise waking it is most of what a call costs. */
  #hasUse(): boolean {
    if (this.#loadReason !== undefined || !this.#readiness.ready) return true
    if (this.#waitsForRoom && this.#calls.room >= LEAST_ROOM) return true
    // What waits for its time waited for this call too, so that the loop does not know when to look.
    return this.#calls.nextDueInMs() < Number.POSITIVE_INFINITY
  }

  /** Takes in the next page; false when there is none, or no room for it. */
  async #take(): Promise<boolean> {
    const { room } = this.#calls
    if (this.#loadReason !== undefined || room < LEAST_ROOM || !this.#follower.hasMore(this.#position)) return false
    const page = await this.#follower.read(this.#position, Math.min(PAGE, room))
    // The place was given up while the page was read: where to go on is decided first.
    if (page === undefined || this.#loadReason !== undefined) return true
    this.#calls.take(page.events)
    this.#position = page.upTo
    return true
  }

  #tell(): void {
    if (this.#loadReason !== undefined) return
    const target = this.#target
    if (target !== undefined && this.#position >= target && this.#calls.isDoneUpTo(target)) this.#target = undefined
    if (this.#calls.isFailing) this.#readiness.tellNotReady('failed for an event and tries it until it succeeds')
    else if (this.#target !== undefined) this.#readiness.tellNotReady('has loaded and catches up')
    else if (!this.#readiness.ready) {
      this.#readiness.tellReady()
      this.#settled()
    }
  }

  /** Sleeps until something is due, new or over. */
  async #rest(context: LoopContext): Promise<void> {
    const full = this.#calls.room < LEAST_ROOM
    this.#waitsForRoom = full
    // A hook without room is not woken by news, and must notice that it has fallen behind.
    const waitMs = Math.min(this.#calls.nextDueInMs(), full ? 1_000 : 60_000)
    const wait = () => context.wait(Math.max(1, waitMs))
    if (full) await wait()
    else await this.#follower.idle(this.#position, { wake: () => this.#loop.wake(), wait })
  }
}
