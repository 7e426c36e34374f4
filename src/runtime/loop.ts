import { AftercommitError } from '../errors.ts'
import { reconnectDelay } from './backoff.ts'
import { systemClock } from './clock.ts'
import { createLoopReport, type LoopReportOptions } from './loop-report.ts'
import type { Service, ServiceState } from './service.ts'
import { withTimeout } from './signal.ts'
import { createWaker, type WaitOutcome } from './waker.ts'

/**
 * A supervised loop. `run` is expected to go on until its signal fires; whatever else ends it is a failure:
 *
 *   idle ──start──▶ running ──stop──▶ stopping ──the run has ended──▶ stopped ──start──▶ running
 *                    │   ▲
 *   threw, or ended  ▼   │  after a growing, jittered delay; listeners of onRestart are told
 *   by itself     restarting ──stop──▶ stopped
 *
 * There is no budget of restarts: a database that is away for ten minutes or ten hours must find us when it returns.
 * The delay starts from the beginning once a run has made progress for `healthyAfterMs`.
 * A run that outlives `stopTimeoutMs` makes `stop` reject and keeps the loop in `stopping`: a second run beside it
 * would be worse than none.
 */
export interface LoopOptions extends LoopReportOptions {
  name: string
  run: (context: LoopContext) => Promise<void>
  /** Aborting it asks the loop to stop; `stop` still tells when it has. */
  signal?: AbortSignal
  stopTimeoutMs?: number
  healthyAfterMs?: number
  random?: () => number
}

export interface LoopContext {
  /** Fires when this run is over, on stop as well as after a failure, so that all it started ends with it. */
  readonly signal: AbortSignal
  /** Idles until `ms` have passed or `wake` was called, before or during. Rejects once the run is over. */
  wait(ms: number): Promise<WaitOutcome>
  /** Tells health that work goes on. Waiting does so by itself. */
  beat(): void
}

export interface Loop extends Service {
  /** Ends the current wait, or else the next one. */
  wake(): void
  /** Called as a failed run is replaced: whatever was told to the old one must be told again. Returns the way out. */
  onRestart(listener: (restart: Restart) => void): () => void
}

export interface Restart {
  loop: string
  error: unknown
}

export function createLoop(options: LoopOptions): Loop {
  return new SupervisedLoop(options)
}

class SupervisedLoop implements Loop {
  readonly name: string
  readonly #options
  readonly #report
  readonly #waker
  readonly #listeners = new Set<(restart: Restart) => void>()
  #state: ServiceState = 'idle'
  /** Aborted to stop; a new one for each start. */
  #stopping = new AbortController()
  #ended: Promise<void> = Promise.resolve()
  /** Failed runs since the last one that did well. */
  #failures = 0

  constructor(options: LoopOptions) {
    this.name = options.name
    this.#options = {
      clock: systemClock,
      stopTimeoutMs: 30_000,
      healthyAfterMs: 60_000,
      random: Math.random,
      ...options,
    }
    this.#report = createLoopReport(options.name, options)
    this.#waker = createWaker(this.#options.clock)
  }

  get state(): ServiceState {
    return this.#state
  }

  async start(): Promise<void> {
    if (this.#state === 'running' || this.#state === 'restarting') return
    if (this.#state === 'stopping' || this.#options.signal?.aborted) {
      throw new AftercommitError(
        'STOPPED',
        `Loop "${this.name}" was asked to stop, so it was not started. Await stop(), then start it again.`,
      )
    }
    this.#stopping = new AbortController()
    this.#options.signal?.addEventListener('abort', this.#requestStop, { once: true })
    this.#state = 'running'
    this.#failures = 0
    this.#report.started()
    this.#ended = this.#supervise(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    if (this.#state === 'idle') this.#state = 'stopped'
    if (this.#state === 'stopped') return
    this.#requestStop()
    const { stopTimeoutMs, clock } = this.#options
    try {
      await withTimeout(this.#ended, stopTimeoutMs, clock, `Loop "${this.name}" was asked to stop and did not end`)
    } catch (error) {
      this.#report.overdue(error)
      throw error
    }
  }

  wake(): void {
    this.#waker.wake()
  }

  onRestart(listener: (restart: Restart) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  readonly #requestStop = (): void => {
    if (this.#state === 'stopping' || this.#state === 'stopped') return
    this.#state = 'stopping'
    this.#report.stopping()
    this.#stopping.abort(new AftercommitError('STOPPED', `Loop "${this.name}" was asked to stop.`))
  }

  /** Never rejects: there is nobody above to catch it. */
  async #supervise(stopping: AbortSignal): Promise<void> {
    const { clock, random, signal } = this.#options
    for (;;) {
      const end = await this.#runOnce(stopping)
      if (end.stopped) break
      this.#failures++
      const delayMs = reconnectDelay(this.#failures, random)
      this.#state = 'restarting'
      this.#report.failed(end.error, this.#failures, delayMs)
      await clock.sleep(delayMs, stopping).catch(() => {})
      if (stopping.aborted) break
      this.#state = 'running'
      this.#report.beat(false)
      this.#tellListeners(end.error)
    }
    signal?.removeEventListener('abort', this.#requestStop)
    this.#report.stopped()
    this.#state = 'stopped'
  }

  async #runOnce(stopping: AbortSignal): Promise<{ stopped: true } | { stopped: false; error: unknown }> {
    const run = new AbortController()
    const endRun = () => run.abort(stopping.reason)
    stopping.addEventListener('abort', endRun, { once: true })
    try {
      await this.#options.run(this.#contextOf(run.signal))
      if (stopping.aborted) return { stopped: true }
      throw new AftercommitError('LOOP_ENDED', `Loop "${this.name}" ended although nobody asked it to stop.`)
    } catch (error) {
      if (!stopping.aborted) return { stopped: false, error }
      if (!isAbort(error, stopping)) this.#report.failedWhileStopping(error)
      return { stopped: true }
    } finally {
      stopping.removeEventListener('abort', endRun)
      run.abort(new AftercommitError('STOPPED', `This run of loop "${this.name}" is over.`))
    }
  }

  #contextOf(signal: AbortSignal): LoopContext {
    const { clock, healthyAfterMs } = this.#options
    const startedAt = clock.monotonic()
    let hasBeaten = false
    const beat = () => {
      // Something a failed run left behind must not vouch for its successor, nor bring a forgotten part back.
      if (signal.aborted) return
      this.#report.beat(!hasBeaten)
      hasBeaten = true
      if (this.#failures > 0 && clock.monotonic() - startedAt >= healthyAfterMs) {
        this.#report.recovered(this.#failures)
        this.#failures = 0
      }
    }
    const wait = async (ms: number) => {
      beat()
      if (!signal.aborted) this.#report.idle()
      const outcome = await this.#waker.wait(ms, signal)
      beat()
      return outcome
    }
    return { signal, wait, beat }
  }

  #tellListeners(error: unknown): void {
    for (const listener of this.#listeners) {
      try {
        listener({ loop: this.name, error })
      } catch (thrown) {
        this.#report.listenerFailed(thrown)
      }
    }
  }
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError')
}
