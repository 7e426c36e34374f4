/**
 * Effects and timers of workflows in memory: rows that wait, and one attempt at a time. What an attempt does, whether
 * there is another and after how long is decided by the code that runs in production. What can happen, failures first:
 *
 *   the attempt fails      the row waits for its next time, or becomes a dead letter of which the workflow hears
 *   it was cancelled       `complete` fails and with it the transaction: nothing was applied
 *   it returns             the row is gone, in the transaction of the answer if there is one
 */
import { toErrorRecord } from '../dead-letters/index.ts'
import { type Delivery, decideOutcome, type RunContext, type Work } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { parseJson } from '../events/index.ts'
import type { Transaction } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import type { InstanceRef, StepWrite, TimerPayload, TimerSummary } from '../workflows/index.ts'
import type { KeptLetter, LetterStore } from './memory-dead-letters.ts'
import type { MemoryStep } from './workflow-store.ts'

interface Row {
  readonly id: bigint
  readonly kind: 'effect' | 'timer'
  readonly name: string
  /** The workflow, and the id of the instance. */
  readonly owner: string
  readonly key: string
  readonly uniqueKey: string | undefined
  readonly ordered: boolean
  readonly destination: string
  readonly payload: string
  readonly createdAt: Date
  /** The dead letter that it was, when it is tried again. */
  readonly letter: KeptLetter | undefined
  dueMs: number
  attempts: number
  firstMs: number | undefined
}

export class MemoryWork {
  readonly #clock: Clock
  readonly #letters: LetterStore
  readonly #works = new Map<string, Work>()
  /** What a dead letter was made of, to make it again. */
  readonly #dead = new Map<bigint, Row>()
  #rows: Row[] = []
  #lastId = 0n

  constructor(clock: Clock, letters: LetterStore) {
    this.#clock = clock
    this.#letters = letters
  }

  register(work: Work): void {
    this.#works.set(`${work.kind}:${work.name}`, work)
  }

  /** What a step leaves to be done, once it has committed. */
  add({ type, id }: InstanceRef, write: StepWrite): void {
    this.#cancelTimers(type, id, write)
    const words = { owner: type, key: id, destination: '', ordered: false, uniqueKey: undefined }
    for (const { name, ordered, destination, payload } of write.effects) {
      this.#push({ ...words, kind: 'effect', name, ordered, destination, payload }, this.#clock.now().getTime())
    }
    for (const { uniqueKey, dueMs, held, payload } of write.timers) {
      if (held && this.#isThere(type, uniqueKey)) continue
      const ordered = (parseJson(payload) as TimerPayload).held === 'in order'
      this.#push({ ...words, kind: 'timer', name: type, ordered, uniqueKey, payload }, dueMs)
    }
  }

  /** It waits already, or has a dead letter that is to be redriven or discarded. */
  #isThere(owner: string, uniqueKey: string): boolean {
    const isIt = (row: Row | undefined) => row?.owner === owner && row.uniqueKey === uniqueKey
    const isOpen = ({ id, status }: KeptLetter) => status === 'dead' && isIt(this.#dead.get(id))
    return this.#rows.some(isIt) || this.#letters.select({ owner }).some(isOpen)
  }

  /** Nothing of a paused instance is due; what was armed keeps its time for later. */
  setHeld({ type, id }: InstanceRef, held: boolean): void {
    for (const row of this.#rows) {
      if (row.owner !== type || row.key !== id) continue
      const due = (parseJson(row.payload) as { due?: number }).due ?? this.#clock.now().getTime()
      row.dueMs = held ? Number.POSITIVE_INFINITY : due
    }
  }

  /** Soonest first. */
  timers({ type, id, limit = 100 }: { type?: string; id?: string; limit?: number }): TimerSummary[] {
    return this.#rows
      .filter(({ kind, owner, key }) => kind === 'timer' && (type ?? owner) === owner && (id ?? key) === key)
      .sort((a, b) => a.dueMs - b.dueMs)
      .slice(0, limit)
      .map(toTimerSummary)
  }

  /** When the next thing that can be done here is due; undefined when there is none. */
  get nextDueMs(): number | undefined {
    const first = this.#next()
    return first === undefined || first.dueMs === Number.POSITIVE_INFINITY ? undefined : first.dueMs
  }

  /** Does the one thing that is due first. False when nothing is due. */
  async runNext(transaction: <T>(fn: (tx: MemoryStep) => Promise<T>) => Promise<T>): Promise<boolean> {
    const row = this.#next()
    const now = this.#clock.now()
    if (row === undefined || row.dueMs > now.getTime()) return false
    const named = this.#works.get(`${row.kind}:${row.name}`)!
    const work = named.of?.(toDelivery(row)) ?? named
    row.firstMs ??= now.getTime()
    row.attempts++
    try {
      await work.run(toDelivery(row), this.#contextOf(row))
      this.#done(row)
    } catch (error) {
      // Cancelled while it ran: what it made of it is of no interest any more.
      if (this.#rows.includes(row)) await this.#failed(row, work, error, transaction)
    }
    return true
  }

  /** Letters that were marked to be tried again are rows once more, in their old place, from the first attempt on. */
  placeMarked(): void {
    for (const letter of this.#letters.select({ status: 'redriving' })) {
      const row = this.#dead.get(letter.id)
      if (row === undefined) continue
      this.#dead.delete(letter.id)
      const dueMs = this.#clock.now().getTime()
      this.#rows.push({ ...row, letter, dueMs, attempts: 0, firstMs: undefined })
    }
  }

  #next(): Row | undefined {
    const possible = this.#rows.filter((row) => this.#works.has(`${row.kind}:${row.name}`) && !this.#waits(row))
    return possible.reduce<Row | undefined>(
      (first, row) => (first && first.dueMs <= row.dueMs ? first : row),
      undefined,
    )
  }

  /** Events of the log wait that came while this instance was paused, be it behind a dead letter of one of them. */
  holdsEvents({ type: owner, id: key }: InstanceRef): boolean {
    const isHeld = (row: Row) => row.kind === 'timer' && row.ordered && row.owner === owner && row.key === key
    return this.#rows.some(isHeld) || this.#isBlocked({ kind: 'timer', owner, key })
  }

  /** Behind an earlier one of its instance, or behind its dead letter. */
  #waits(row: Row): boolean {
    if (!row.ordered) return false
    const { kind, owner, key } = row
    const isBefore = (other: Row) =>
      other.ordered && other.id < row.id && other.kind === kind && other.owner === owner && other.key === key
    return this.#rows.some(isBefore) || this.#isBlocked({ kind, owner, key })
  }

  #isBlocked(of: Pick<Row, 'kind' | 'owner' | 'key'>): boolean {
    const blocks = ({ id, status }: KeptLetter) => status === 'dead' && this.#dead.get(id)?.ordered === true
    return this.#letters.select(of).some(blocks)
  }

  #contextOf(row: Row): RunContext {
    return {
      signal: new AbortController().signal,
      complete: async (tx) => {
        if (!this.#rows.includes(row)) throw claimLost(row)
        const step = tx as unknown as MemoryStep
        step.onCommit.unshift(() => this.#done(row))
      },
    }
  }

  async #failed(
    row: Row,
    work: Work,
    error: unknown,
    transaction: <T>(fn: (tx: MemoryStep) => Promise<T>) => Promise<T>,
  ): Promise<void> {
    const now = this.#clock.now().getTime()
    // Without jitter: a test may say when the next attempt is due.
    const outcome = decideOutcome({ error, attempt: row.attempts }, { ...work.retry, jitter: 0 })
    if (outcome.kind === 'retry') {
      row.dueMs = now + outcome.delayMs
      if (!outcome.counts) row.attempts--
      return
    }
    const delivery = toDelivery(row)
    this.#remove(row)
    const letter = this.#letters.add({
      kind: row.kind,
      owner: row.owner,
      key: row.key,
      event: work.toEvent(delivery),
      error: toErrorRecord(work.toLetterError?.(error, row.attempts) ?? error),
      attempts: row.attempts,
      sinceFirstMs: now - (row.firstMs ?? now),
      parks: row.ordered,
    })
    this.#dead.set(letter.id, row)
    await transaction(async (tx) => work.onDead?.(tx as unknown as Transaction, delivery, error))
  }

  #cancelTimers(type: string, id: string, { completed, continuesAfter, cancelTimers, timers }: StepWrite): void {
    const replaced = timers.filter(({ held }) => !held).map(({ uniqueKey }) => uniqueKey)
    const gone = new Set<string | undefined>([...cancelTimers, ...replaced])
    const isOver = completed || continuesAfter !== undefined
    const isGone = ({ kind, owner, key, uniqueKey, payload }: Row) => {
      if (kind !== 'timer' || owner !== type || key !== id) return false
      // An input that waited for its instance to be resumed is for the next life as well.
      const isForNext = !completed && (parseJson(payload) as TimerPayload).held !== undefined
      return isOver ? !isForNext : gone.has(uniqueKey)
    }
    this.#rows = this.#rows.filter((row) => !isGone(row))
    // A dead letter of a timer that was replaced or cancelled is not to fire it again.
    const words = {
      who: `workflow ${type}`,
      reason: isOver ? 'the workflow is over' : 'the timer was replaced or cancelled',
    }
    for (const letter of this.#letters.select({ kind: 'timer', owner: type, key: id })) {
      const row = this.#dead.get(letter.id)
      const isOpen = letter.status === 'dead' || letter.status === 'redriving'
      if (isOpen && row && isGone(row)) this.#letters.change(letter, { ...words, status: 'discarded', parks: false })
    }
  }

  #push(row: Omit<Row, 'id' | 'letter' | 'createdAt' | 'dueMs' | 'attempts' | 'firstMs'>, dueMs: number): void {
    const fresh = { letter: undefined, createdAt: this.#clock.now(), dueMs, attempts: 0, firstMs: undefined }
    this.#rows.push({ ...row, ...fresh, id: ++this.#lastId })
  }

  #done(row: Row): void {
    this.#remove(row)
    if (row.letter) this.#letters.change(row.letter, { status: 'resolved', parks: false })
  }

  #remove(row: Row): void {
    this.#rows = this.#rows.filter((other) => other !== row)
  }
}

function toDelivery({ id, kind, name, owner, key, destination, payload, attempts, createdAt }: Row): Delivery {
  return {
    id,
    kind,
    name,
    owner,
    key,
    destination,
    tenant: '',
    payload: parseJson(payload),
    attempt: attempts,
    createdAt,
  }
}

function toTimerSummary({ id, owner, key, payload, dueMs, attempts }: Row): TimerSummary {
  const { key: name, due } = parseJson(payload) as TimerPayload
  const held = dueMs === Number.POSITIVE_INFINITY
  return { delivery: id, type: owner, id: key, key: name ?? null, dueAt: new Date(due), held, attempts }
}

function claimLost({ kind, owner, key }: Row): AftercommitError {
  return new AftercommitError(
    'CLAIM_LOST',
    `A ${kind} of workflow ${owner}/${key} was cancelled or replaced while it ran, so its end was not written.`,
  )
}
