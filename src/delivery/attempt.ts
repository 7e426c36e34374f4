/**
 * One attempt, from its call to its end. First attempts and rows are both run by it. It ends once, failures first:
 *
 *   its owner ended   the call is aborted, and the attempt fails with the owner's reason
 *   its time is up    the call is aborted, and the attempt fails with TIMED_OUT; what the call does later changes nothing
 *   it threw          synchronously or by its promise
 *   it returned
 *
 * Most calls end before the event loop turns once. Only those that do not get a timer, which costs more than such a call.
 */
import { AftercommitError } from '../errors.ts'
import { type Abortable, formatDuration, isThenable, LazySignal } from '../runtime/index.ts'
import type { Work } from './delivery.ts'
import { type InFlight, SLOW_MS } from './in-flight.ts'

export abstract class Attempt extends LazySignal {
  /** Whose share of the places it takes. */
  abstract readonly share: string
  abstract readonly work: Pick<Work, 'name' | 'timeoutMs' | 'toTimeout'>
  /** Ends the attempt early. */
  readonly owner: Abortable | undefined
  startedMs = 0
  #inFlight: Pick<InFlight, 'clock' | 'enter' | 'leave'> | undefined
  #reject = nothing as (error: unknown) => void
  #isOver = false
  #cancelTimer = nothing
  #stopListening = nothing

  constructor(owner?: Abortable) {
    super()
    this.owner = owner
  }

  protected abstract call(): unknown

  protected onSlow(): void {}

  /** Undefined when the call was done at once; throws what it throws at once. */
  run(inFlight: Pick<InFlight, 'clock' | 'enter' | 'leave'>): Promise<void> | undefined {
    this.startedMs = inFlight.clock.monotonic()
    const result = this.call()
    if (!isThenable(result)) return undefined
    this.#inFlight = inFlight
    inFlight.enter(this)
    return new Promise((resolve, reject) => {
      this.#reject = reject
      result.then(
        () => {
          this.#close()
          resolve()
        },
        (error) => {
          this.#close()
          reject(error ?? new Error('rejected with nothing'))
        },
      )
      onNextTurn(this)
    })
  }

  /** The event loop has turned, and the call may still be under way. */
  guard(): void {
    if (this.#isOver) return
    const { clock } = this.#inFlight!
    const { owner, work } = this
    if (owner) this.#stopListening = owner.onAbort(() => this.#fail(owner.reason))
    if (this.#isOver) return
    if (work.timeoutMs <= SLOW_MS) this.#cancelTimer = clock.setTimer(work.timeoutMs, () => this.#timeOut())
    else this.#cancelTimer = clock.setTimer(SLOW_MS, () => this.#becomeSlow())
  }

  #becomeSlow(): void {
    this.#cancelTimer = this.#inFlight!.clock.setTimer(this.work.timeoutMs - SLOW_MS, () => this.#timeOut())
    this.onSlow()
  }

  #timeOut(): void {
    this.#fail(timedOut(this.work))
  }

  #fail(reason: unknown): void {
    this.#close()
    this.abort(reason)
    this.#reject(reason)
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelTimer()
    this.#stopListening()
    this.#inFlight!.leave(this)
  }
}

function nothing(): void {}

/** One turn for all calls that began in it. */
let young: Attempt[] = []

function onNextTurn(attempt: Attempt): void {
  if (young.length === 0) setImmediate(guardAll)
  young.push(attempt)
}

function guardAll(): void {
  const all = young
  young = []
  for (const attempt of all) attempt.guard()
}

function timedOut({ name, timeoutMs, toTimeout }: Attempt['work']): Error {
  if (toTimeout) return toTimeout()
  return new AftercommitError(
    'TIMED_OUT',
    `"${name}" was still running after ${formatDuration(timeoutMs)}. Its signal has fired; make it end then, or raise \`timeout\`.`,
  )
}
