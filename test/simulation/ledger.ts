/**
 * Decides whether a run kept its promises, from what happened outside of the code under test: events that were committed,
 * calls that were made and how they ended, what the database committed. The rules, by what they guard:
 *
 *   nothing is lost          a checkpoint passes an event only when a call of it succeeded, or its letter or row is there
 *   nothing comes back       a checkpoint never moves back, nor takes an event out that it had passed
 *   nothing is called twice  not again by the owner that succeeded, not once a checkpoint has passed it, and not more of what
 *                            had begun before the owner changed than its bound
 *   nothing is left twice    an action has one row or letter
 *   order                    an event begins when all earlier ones of its key are over, and no call of its key is under way
 */
import type { AnyEvent } from '../../src/log/index.ts'
import { contains } from './database/ranges.ts'
import type { Store } from './database/store.ts'
import type { SubscriptionPlan } from './plan.ts'

export interface LedgerCall {
  readonly position: number
  readonly key: string
  readonly term: number
  readonly owner: string | undefined
  /** It returned a promise. */
  isAsync: boolean
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
  /** By event and action: the term in which it was done, or what it left. */
  readonly #actions = new Map<string, { doneIn?: number; left?: 'row' | 'letter' }>()

  constructor(plan: SubscriptionPlan, store: Store, fail: (violation: string) => void) {
    this.plan = plan
    this.#store = store
    this.#fail = (violation) => fail(`${plan.id}: ${violation}`)
  }

  get isDone(): boolean {
    return this.#allCovered === this.#events.length
  }

  /** Why it is not done. */
  get open(): string {
    const open = this.#events.filter((position) => !this.#covered.has(position))
    return `${open.length} of ${this.#events.length} events are not passed, the first is ${open[0]}`
  }

  committed(event: AnyEvent): void {
    const position = Number(event.position)
    this.#events.push(position)
    this.#idOf.set(position, event.id)
    const line = this.#byKey.get(event.key) ?? { positions: [], over: 0 }
    this.#byKey.set(event.key, line)
    this.#indexInKey.set(position, line.positions.length)
    line.positions.push(position)
  }

  /** A handler is called, or with `owner` the first attempt of an action. */
  begins(event: AnyEvent, term: number, isRedriven: boolean, owner?: string): LedgerCall {
    const position = Number(event.position)
    const { key } = event
    const isPresent = this.#partition.term === term
    const what = `event ${position}${owner === undefined ? '' : ` (${owner})`} of key ${key} in term ${term}`
    if (!isRedriven) {
      const action = owner === undefined ? undefined : this.#actionOf(position, owner)
      const doneIn = action ? action.doneIn : this.#succeeded.get(position)
      if (doneIn === term) this.#fail(`called twice: ${what} had succeeded in the same term`)
      if (isPresent && this.#covered.has(position))
        this.#fail(`called twice: ${what} begins although the checkpoint has passed it`)
      if (isPresent && action?.left) this.#fail(`called twice: ${what} begins although its ${action.left} is written`)
    }
    if (this.plan.actions === 0) this.#checkOrder(position, key, term, what)
    const call: LedgerCall = { position, key, term, owner, isAsync: false }
    this.#running.add(call)
    return call
  }

  /** The call returned a promise. */
  goesOn(call: LedgerCall): void {
    call.isAsync = true
    const { term, position } = call
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
    this.#running.delete(call)
    if (!hasSucceeded) return
    const { position, term, owner } = call
    if (owner === undefined) this.#succeeded.set(position, term)
    else this.#actionOf(position, owner).doneIn = term
  }

  /** What runs in a process that died has ended, and nobody knows how. */
  died(isOfProcess: (call: LedgerCall) => boolean): void {
    for (const call of this.#running) if (isOfProcess(call)) this.#running.delete(call)
  }

  onLeft(kind: 'row' | 'letter', owner: string, eventId: string): void {
    // The letter of a whole event.
    if (owner === this.plan.id) return
    const action = this.#actionOf(Number(eventId.slice(1)), owner)
    if (action.left)
      this.#fail(`left twice: a ${kind} of ${owner} for ${eventId} is written, and its ${action.left} is there`)
    action.left = kind
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
      const action = this.#actionOf(position, ownerOf(this.plan, n))
      if (action.doneIn === undefined && !action.left) return false
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

  #actionOf(position: number, owner: string): { doneIn?: number; left?: 'row' | 'letter' } {
    const name = `${position} ${owner}`
    let action = this.#actions.get(name)
    if (action === undefined) {
      action = {}
      this.#actions.set(name, action)
    }
    return action
  }
}

/** The owner of the rows and letters of an action. */
export function ownerOf({ id }: Pick<SubscriptionPlan, 'id'>, action: number): string {
  return `${id}/${action}`
}
