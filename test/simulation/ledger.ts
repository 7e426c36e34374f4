/**
 * Decides whether a run kept its promises, from what happened outside of the code under test: events that were committed,
 * calls that were made and how they ended, what the database committed. The rules, by what they guard:
 *
 *   nothing is lost          a checkpoint passes an event only when a call of it succeeded, or its letter or row is there
 *   nothing comes back       a checkpoint never moves back, nor takes an event out that it had passed
 *   nothing is called twice  not again by the owner that succeeded, not once a checkpoint has passed it, and not more of what
 *                            had begun before the owner changed than its bound
 *   nothing is left twice    an action has one row or letter (action-ledger.ts)
 *   order                    an event begins when all earlier ones of its key are over, and no call of its key is under way
 */
import type { AnyEvent } from '../../src/log/index.ts'
import { ActionLedger } from './action-ledger.ts'
import { contains } from './database/ranges.ts'
import type { Store } from './database/store.ts'
import type { SubscriptionPlan } from './plan.ts'

export interface LedgerCall {
  readonly position: number
  readonly key: string
  readonly term: number
  readonly process: string
  /** Of an action. */
  readonly owner: string | undefined
}

export class Ledger {
  readonly plan: SubscriptionPlan
  readonly #store: Store
  readonly #fail: (violation: string) => void
  /** Positions in order. */
  readonly #events: number[] = []
  readonly #idOf = new Map<number, string>()
  readonly #byKey = new Map<string, { readonly positions: number[]; over: number }>()
  readonly #indexInKey = new Map<number, number>()
  /** By position: the term in which a call succeeded last. */
  readonly #succeeded = new Map<number, number>()
  readonly #covered = new Set<number>()
  #allCovered = 0
  #position = 0
  /** By term: positions that have begun and are in no committed checkpoint of this term. */
  readonly #unsaved = new Map<number, Set<number>>()
  readonly #running = new Set<LedgerCall>()
  readonly actions: ActionLedger

  constructor(plan: SubscriptionPlan, store: Store, fail: (violation: string) => void) {
    this.plan = plan
    this.#store = store
    this.#fail = (violation) => fail(`${plan.id}: ${violation}`)
    this.actions = new ActionLedger(plan, store, this.#fail)
  }

  get isDone(): boolean {
    return this.#allCovered === this.#events.length && (this.plan.actions === 0 || this.actions.open.length === 0)
  }

  /** Why it is not done. */
  get open(): string {
    const open = this.#events.filter((position) => !this.#covered.has(position))
    const rows = this.actions.open.map(({ id, token }) => `${id}${token === null ? '' : ' (claimed)'}`)
    return `${open.length} of ${this.#events.length} events are not passed (${open[0]} …), ${rows.length} rows are not done (${rows[0]} …)`
  }

  committed(event: AnyEvent): void {
    const position = Number(event.position)
    this.#events.push(position)
    this.#idOf.set(position, event.id)
    const line = this.#byKey.get(event.key) ?? { positions: [], over: 0 }
    this.#byKey.set(event.key, line)
    this.#indexInKey.set(position, line.positions.length)
    line.positions.push(position)
    this.actions.committed(event)
  }

  /** A handler is called, or with `owner` the first attempt of an action. */
  begins(event: AnyEvent, term: number, process: string, isRedriven: boolean, owner?: string): LedgerCall {
    const position = Number(event.position)
    const { key } = event
    const isPresent = this.#partition.term === term
    const what = `event ${position} of key ${key} in term ${term}`
    if (isPresent && !isRedriven && this.#covered.has(position))
      this.#fail(`called twice: ${what} begins although the checkpoint has passed it`)
    if (owner !== undefined) return this.actions.first(event, owner, term, isPresent, process)
    if (!isRedriven && this.#succeeded.get(position) === term)
      this.#fail(`called twice: ${what} had succeeded in the same term`)
    this.#checkOrder(position, key, term, what)
    const call: LedgerCall = { position, key, term, process, owner }
    this.#running.add(call)
    return call
  }

  /** The call returned a promise. */
  goesOn(call: LedgerCall): void {
    const { term, position } = call
    // An attempt at a row: the checkpoint has nothing to do with it.
    if (term === 0) return
    const unsaved = this.#unsaved.get(term) ?? new Set()
    this.#unsaved.set(term, unsaved)
    unsaved.add(position)
    if (unsaved.size <= this.plan.mostUnsaved) return
    this.#fail(
      `called too many: ${unsaved.size} events have begun in term ${term} and are in no committed checkpoint; ` +
        `at most ${this.plan.mostUnsaved} may be called again when its owner dies`,
    )
  }

  ends(call: LedgerCall, hasSucceeded: boolean): void {
    if (call.owner !== undefined) this.actions.ends(call, hasSucceeded)
    else if (hasSucceeded) this.#succeeded.set(call.position, call.term)
    this.#running.delete(call)
  }

  /** What runs in a process that died has ended, and nobody knows how. */
  died(process: string): void {
    for (const call of this.#running) if (call.process === process) this.#running.delete(call)
    this.actions.died(process)
  }

  onLeft(kind: 'row' | 'letter', owner: string, eventId: string, term: number): void {
    // The letter of a whole event.
    if (owner !== this.plan.id) this.actions.onLeft(kind, owner, eventId, term)
  }

  onCheckpoint(term: number): void {
    const { position, done } = this.#partition
    if (position < this.#position)
      this.#fail(`came back: term ${term} moves the checkpoint from ${this.#position} to ${position}`)
    this.#position = position
    const end = Math.max(position, done.at(-1)?.to ?? 0)
    const unsaved = this.#unsaved.get(term)
    for (let at = this.#allCovered; at < this.#events.length; at++) {
      const event = this.#events[at]!
      if (event > end && !this.#covered.has(event)) continue
      const isCovered = event <= position || contains(done, event)
      if (isCovered) {
        unsaved?.delete(event)
        if (!this.#covered.has(event)) this.#pass(event, term)
      } else if (this.#covered.has(event)) {
        this.#fail(`came back: term ${term} writes that event ${event} is not finished; it was`)
        this.#covered.delete(event)
      }
    }
    while (this.#allCovered < this.#events.length && this.#events[this.#allCovered]! <= position) this.#allCovered++
  }

  get #partition() {
    return this.#store.partitions.get(this.plan.id)!
  }

  #pass(position: number, term: number): void {
    this.#covered.add(position)
    if (this.#isAccountedFor(position)) return
    this.#fail(`lost: term ${term} passes event ${position}, which was not handled and left neither letter nor row`)
  }

  #isAccountedFor(position: number): boolean {
    const { id, actions } = this.plan
    const eventId = this.#idOf.get(position)
    if (this.#store.letters.some((letter) => letter.owner === id && letter.eventId === eventId)) return true
    if (actions === 0) {
      const isParked = this.#store.parked.some((parked) => parked.owner === id && parked.position === position)
      return isParked || this.#succeeded.has(position)
    }
    for (let n = 1; n <= actions; n++) {
      if (!this.actions.isAccountedFor(position, ownerOf(this.plan, n))) return false
    }
    return true
  }

  #checkOrder(position: number, key: string, term: number, what: string): void {
    const line = this.#byKey.get(key)!
    while (line.over < line.positions.length && this.#isOver(line.positions[line.over]!)) line.over++
    if (this.#indexInKey.get(position)! > line.over)
      this.#fail(`order: ${what} begins before event ${line.positions[line.over]} is over`)
    for (const call of this.#running) {
      if (call.key === key && call.term === term)
        this.#fail(`order: ${what} begins while event ${call.position} of the same key is under way`)
    }
  }

  /** Later events of its key need not wait for it. */
  #isOver(position: number): boolean {
    if (this.#succeeded.has(position)) return true
    const eventId = this.#idOf.get(position)
    const { id } = this.plan
    return this.#store.letters.some((letter) => letter.owner === id && letter.eventId === eventId && !letter.parks)
  }
}

/** The owner of the rows and letters of an action. */
export function ownerOf({ id }: Pick<SubscriptionPlan, 'id'>, action: number): string {
  return `${id}/${action}`
}
