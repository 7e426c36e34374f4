/**
 * One subscription of the in-memory twin. What can happen to an event, failures first:
 *
 *   the handler fails            it is tried again at once; the clock of the bus moves on by the delay
 *   the last try fails           a letter (park, skip), or the subscription stops and everything waits
 *   key after key fails          `failing`: the next event is tried once per delivery until it succeeds
 *   its key waits for a letter   it waits too
 *   a letter was marked          it is run again, then what waits behind it, in order; then its key is free
 */
import { type NewLetter, toErrorRecord } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import type { AnyEvent, StartPoint } from '../log/index.ts'
import { type BisectStep, bisect, type TestClock } from '../runtime/index.ts'
import { type Definition, decideFailure } from '../subscriptions/index.ts'
import { type Called, type CallParts, callHandler } from './memory-call.ts'
import { MemoryCheckpoint } from './memory-checkpoint.ts'
import type { KeptLetter, LetterStore } from './memory-dead-letters.ts'
import type { MemoryLog } from './memory-log.ts'

/** A try that failed. */
export interface HandlerFailure {
  readonly subscription: string
  readonly event: AnyEvent
  readonly error: unknown
  readonly attempt: number
  /** What became of the event: to be tried again, a dead letter, or the subscription stopped at it. */
  readonly outcome: 'retry' | 'dead' | 'stopped'
}

export interface ReaderParts extends CallParts {
  readonly log: MemoryLog
  readonly letters: LetterStore
  readonly clock: TestClock
  readonly failed: (failure: HandlerFailure) => void
  /** How far other subscriptions have come. */
  readonly checkpointOf: (id: string) => bigint
}

interface Item extends Called {
  readonly key: string
  readonly letter?: KeptLetter
  /** Its place in the log. */
  readonly at: number
  attempts: number
  faults: number
  firstTriedMs: number | undefined
}

type Outcome = 'finished' | 'held' | 'stopped'

/** No server is between the handler and the bus, so every failure is the handler's and its faults count. */
const HERE = { byHandler: true, connectionLost: false, committed: 'work' } as const

export class MemoryReader {
  readonly definition: Definition
  status: 'active' | 'failing' | 'stopped' = 'active'
  reason: string | null = null
  paused = false
  lastEventId: string | null = null
  readonly #parts: ReaderParts
  readonly checkpoint: MemoryCheckpoint
  #streak: KeptLetter[] = []
  /** The event that waits for its next try, and the delivery that tried it last. */
  #held: Item | undefined
  #heldIn: number | undefined

  constructor(definition: Definition, parts: ReaderParts) {
    this.definition = definition
    this.#parts = parts
    this.checkpoint = new MemoryCheckpoint(parts.log, definition.matches)
    this.checkpoint.seek(definition.from)
  }

  /** Where the next thing to do stands, if anything may be done; what was marked comes before every event. */
  due(delivery: number): bigint | undefined {
    if (this.paused || this.status === 'stopped') return undefined
    if (this.#parts.letters.marked(this.definition.id).length > 0) return 0n
    if (this.#heldIn === delivery) return undefined
    const next = this.checkpoint.next
    return next && next.position <= this.#limit() ? next.position : undefined
  }

  /** Does what `due` spoke of. */
  async step(delivery: number): Promise<void> {
    const [letter] = this.#parts.letters.marked(this.definition.id)
    if (letter) return this.#redrive(letter)
    const most = this.definition.handleBatch ? this.definition.batchSize : 1
    const batch = this.checkpoint.collect(most, this.#limit()).map(({ event, at }) => this.#toItem(event, 'log', at))
    if (!(await this.#runBatch(batch)) && this.#held) this.#heldIn = delivery
  }

  /** Moves the checkpoint; letters stay. */
  seek(to: StartPoint): void {
    this.checkpoint.seek(to)
    this.wake()
  }

  /** Begins anew where it stands, as a process that takes it over would. */
  wake(): void {
    this.status = 'active'
    this.reason = null
    this.#held = undefined
    this.#heldIn = undefined
    this.#streak = []
  }

  /** Of what is not final nothing is taken; with `after`, nothing that those before it have not finished. */
  #limit(): bigint {
    let limit = this.#parts.log.frontier
    for (const id of this.definition.after) {
      const reached = this.#parts.checkpointOf(id)
      if (reached < limit) limit = reached
    }
    return limit
  }

  #toItem(event: AnyEvent, source: Item['source'], at: number): Item {
    if (source === 'log' && this.#held?.event === event) return this.#held
    const item = { event, key: event.key, source, at, attempts: 0, faults: 0, firstTriedMs: undefined }
    try {
      return source === 'log' ? { ...item, key: String(this.definition.keyOf(event)) } : item
    } catch (error) {
      return { ...item, keyError: error ?? new Error('key threw nothing') }
    }
  }

  /** False when something must wait. */
  async #runBatch(batch: readonly Item[]): Promise<boolean> {
    return (await bisect(batch, (some) => this.#tryBatch(some))).length === 0
  }

  async #tryBatch(batch: readonly Item[]): Promise<BisectStep<Item>> {
    const { letters } = this.#parts
    const { id } = this.definition
    const [first, ...more] = batch.filter(({ key }) => !letters.isParked(id, key))
    if (first && more.length === 0) {
      if ((await this.#run(first)) !== 'finished') return { kind: 'stop', left: batch }
    } else if (first) {
      try {
        await callHandler(this.definition, [first, ...more], this.#parts)
      } catch {
        return { kind: 'halve', items: batch }
      }
      this.#succeeded(more.at(-1)!)
    }
    for (const item of batch) {
      if (item !== first && !more.includes(item)) letters.park(id, item.key, item.event)
    }
    this.checkpoint.pass(batch.at(-1)!.at)
    return { kind: 'done' }
  }

  /** Tries one event until it is done with. */
  async #run(item: Item): Promise<Outcome> {
    for (;;) {
      item.firstTriedMs ??= this.#parts.clock.monotonic()
      try {
        const called = callHandler(this.definition, [item], this.#parts)
        if (called) await called
      } catch (error) {
        const outcome = await this.#failed(item, error)
        if (outcome !== 'retry') return outcome
        continue
      }
      this.#succeeded(item)
      return 'finished'
    }
  }

  #succeeded({ source, letter, event }: Item): void {
    const { letters } = this.#parts
    if (letter) letters.change(letter, { status: 'resolved' })
    if (source === 'log') this.lastEventId = event.id
    if (this.status === 'failing') {
      const marks = { status: 'redriving', who: 'aftercommit', reason: 'the subscription recovered' } as const
      for (const one of this.#streak) if (one.status === 'dead') letters.change(one, marks)
    }
    if (this.status === 'failing' || this.#streak.length > 0) this.wake()
  }

  async #failed(item: Item, error: unknown): Promise<Outcome | 'retry'> {
    const { clock } = this.#parts
    const { retry, onFailure } = this.definition
    const verdict = decideFailure({ ...HERE, error, attempt: item.attempts + 1, faults: item.faults }, retry, () => 0.5)
    item.attempts += verdict.kind === 'dead' || verdict.counts ? 1 : 0
    item.faults = verdict.kind === 'retry' && verdict.isFault ? item.faults + 1 : 0
    const fromLog = item.source === 'log'
    if (fromLog && this.status === 'failing') {
      this.#tell(item, error, 'retry')
      this.#held = item
      return 'held'
    }
    if (verdict.kind === 'retry') {
      this.#tell(item, error, 'retry')
      await clock.advance(verdict.delayMs)
      return 'retry'
    }
    if (onFailure === 'stop' && fromLog) {
      this.#tell(item, error, 'stopped')
      const { name, code, message } = toErrorRecord(error)
      this.status = 'stopped'
      this.reason = `event ${item.event.id}: ${code ?? name}: ${message}`
      return 'stopped'
    }
    this.#tell(item, error, 'dead')
    this.#bury(item, error)
    return 'finished'
  }

  #tell({ event, attempts }: Item, error: unknown, outcome: HandlerFailure['outcome']): void {
    this.#parts.failed({ subscription: this.definition.id, event, error, attempt: Math.max(1, attempts), outcome })
  }

  /** The event becomes a letter; with `park`, later events of its key wait behind it. */
  #bury({ event, key, letter, source, attempts, firstTriedMs }: Item, error: unknown): void {
    const { letters, clock } = this.#parts
    const { id, onFailure, failingAfter } = this.definition
    const record = toErrorRecord(error)
    if (letter) {
      letters.change(letter, {
        status: 'dead',
        error: record,
        attempts: letter.attempts + attempts,
        lastAttemptAt: clock.now(),
      })
      return
    }
    const unauthorised = error instanceof AftercommitError && error.code === 'UNAUTHORIZED'
    const parks = onFailure === 'park' && !unauthorised
    const now = clock.monotonic()
    const times = { attempts: Math.max(1, attempts), sinceFirstMs: now - (firstTriedMs ?? now) }
    const written: NewLetter = { kind: 'subscription', owner: id, key, event, error: record, parks, ...times }
    const kept = letters.add(written)
    if (source !== 'log') return
    this.lastEventId = event.id
    if (unauthorised) return
    this.#streak.push(kept)
    if (this.#streak.length < failingAfter) return
    this.status = 'failing'
    this.reason = `${this.#streak.length} keys in a row ran out of tries`
  }

  async #redrive(letter: KeptLetter): Promise<void> {
    if (letter.status === 'redriving') {
      await this.#run({ ...this.#toItem(letter.event, 'letter', -1), key: letter.key, letter })
    }
    if (letter.parks && letter.status !== 'dead') await this.#goOnBehind(letter)
  }

  /** What waits behind a letter that is over, up to the next one that fails. */
  async #goOnBehind(letter: KeptLetter): Promise<void> {
    const { letters } = this.#parts
    const { id } = this.definition
    const waiting = letters.waiting(id, letter.key)
    while (waiting.length > 0 && !letters.isBlocked(id, letter.key)) {
      await this.#run({ ...this.#toItem(waiting[0]!, 'parked', -1), key: letter.key })
      waiting.shift()
    }
    if (letters.isBlocked(id, letter.key)) letter.parks = false
    else letters.free(id, letter.key)
  }
}
