/**
 * The ledger of what an observer does: its first attempts, the rows they leave, and the attempts at those. An action of an
 * event is over once a call succeeded. It is lost when a checkpoint passes its event, or its row goes, before that.
 */
import type { AnyEvent } from '../../src/log/index.ts'
import type { Store } from './database/store.ts'
import type { DeliveryRow } from './database/tables.ts'
import type { LedgerCall } from './ledger.ts'
import type { SubscriptionPlan } from './plan.ts'

interface Action {
  isDone: boolean
  /** The term of the owner whose first attempt succeeded last. */
  doneIn?: number
  /** The worker whose attempt at the row succeeded. */
  doneBy?: string
  left?: 'row' | 'letter'
}

/** An attempt at a row. */
interface LaterCall extends LedgerCall {
  readonly row: bigint
  /** Undefined where its lease was lost before the attempt began. */
  readonly worker: string | undefined
}

export class ActionLedger {
  readonly #plan: SubscriptionPlan
  readonly #store: Store
  readonly #fail: (violation: string) => void
  readonly #actions = new Map<string, Action>()
  /** Positions by key. */
  readonly #lines = new Map<string, number[]>()
  /** By action and key: how many of its line are over. */
  readonly #over = new Map<string, number>()
  readonly #running = new Set<LedgerCall | LaterCall>()

  constructor(plan: SubscriptionPlan, store: Store, fail: (violation: string) => void) {
    this.#plan = plan
    this.#store = store
    this.#fail = fail
  }

  /** Rows are worked off, but for those that wait behind a dead letter. */
  get open(): DeliveryRow[] {
    const isParked = ({ owner, key, ordered }: DeliveryRow) =>
      ordered && this.#store.letters.some((one) => one.owner === owner && one.delivery?.key === key && one.parks)
    return [...this.#store.deliveries.values()].filter((row) => !isParked(row))
  }

  committed({ key, position }: AnyEvent): void {
    const line = this.#lines.get(key) ?? []
    this.#lines.set(key, line)
    line.push(Number(position))
  }

  first(event: AnyEvent, owner: string, term: number, isPresent: boolean, process: string): LedgerCall {
    const position = Number(event.position)
    const action = this.#actionOf(position, owner)
    const what = `${owner} for event ${position} in term ${term}`
    if (action.doneIn === term) this.#fail(`called twice: ${what} had succeeded in the same term`)
    if (isPresent && action.left) this.#fail(`called twice: ${what} begins although its ${action.left} is written`)
    return this.#begin({ position, key: event.key, term, owner, process }, what)
  }

  /** The claim says by which token the process has the row. */
  later(event: AnyEvent, owner: string, claim: { id: bigint; token: bigint }, process: string): LaterCall {
    const position = Number(event.position)
    const row = this.#store.deliveries.get(Number(claim.id))
    const isHeld = row?.token === claim.token.toString()
    const live = [...this.#store.workers.values()].filter(({ worker }) => this.#store.lives(worker))
    const what = `row ${claim.id} of ${owner} for event ${position} in ${process}`
    if (!isHeld && live.some((one) => one.process === process))
      this.#fail(`called twice: ${what} begins, and its worker has a lease but not this row`)
    const worker = isHeld ? row!.worker! : undefined
    const { doneBy } = this.#actionOf(position, owner)
    if (worker !== undefined && doneBy === worker) this.#fail(`called twice: ${what} had succeeded in the same worker`)
    for (const other of this.#running) {
      if ('row' in other && other.row === claim.id && this.#isPresent(other))
        this.#fail(`called twice: ${what} begins while it is under way in ${other.process}, whose lease stands`)
    }
    return this.#begin<LaterCall>({ position, key: event.key, term: 0, owner, process, row: claim.id, worker }, what)
  }

  ends(call: LedgerCall | LaterCall, hasSucceeded: boolean): void {
    for (const one of this.#running) {
      if (one.owner === call.owner && one.position === call.position && one.process === call.process)
        this.#running.delete(one)
    }
    if (!hasSucceeded) return
    const action = this.#actionOf(call.position, call.owner!)
    action.isDone = true
    if ('worker' in call) action.doneBy = call.worker ?? 'a worker that lost its lease'
    else action.doneIn = call.term
  }

  died(process: string): void {
    for (const call of this.#running) if (call.process === process) this.#running.delete(call)
  }

  onLeft(kind: 'row' | 'letter', owner: string, eventId: string, term: number): void {
    const action = this.#actionOf(Number(eventId.slice(1)), owner)
    const what = `a ${kind} of ${owner} for ${eventId}`
    if (action.left) this.#fail(`left twice: ${what} is written, and its ${action.left} is there`)
    if (action.doneIn === term) this.#fail(`left twice: ${what} is written, and its call succeeded in the same term`)
    action.left = kind
  }

  onDone({ id, owner, eventId }: DeliveryRow): void {
    if (this.#actionOf(Number(eventId!.slice(1)), owner).doneBy !== undefined) return
    this.#fail(`lost: row ${id} of ${owner} for ${eventId} goes, and no attempt at it succeeded`)
  }

  isAccountedFor(position: number, owner: string): boolean {
    const { isDone, left } = this.#actionOf(position, owner)
    return isDone || left !== undefined
  }

  #begin<Call extends LedgerCall>(call: Call, what: string): Call {
    if (this.#plan.isOrdered) this.#checkOrder(call, what)
    this.#running.add(call)
    return call
  }

  #checkOrder({ position, key, owner, process }: LedgerCall, what: string): void {
    const line = this.#lines.get(key)!
    const name = `${owner} ${key}`
    let over = this.#over.get(name) ?? 0
    while (over < line.length && this.#isOver(line[over]!, owner!)) over++
    this.#over.set(name, over)
    if (over < line.length && line[over]! < position)
      this.#fail(`order: ${what} of key ${key} begins before event ${line[over]} is over`)
    for (const other of this.#running) {
      if (other.owner === owner && other.key === key && other.process === process && this.#isPresent(other))
        this.#fail(`order: ${what} of key ${key} begins while event ${other.position} is under way in the same process`)
    }
  }

  /** Who began the call may still write what becomes of it. Else the call is given up, and may go on outside for a while. */
  #isPresent(call: LedgerCall | LaterCall): boolean {
    if (!('row' in call)) return call.term === this.#store.partitions.get(this.#plan.id)!.term
    return this.#store.lives(call.worker ?? null)
  }

  /** Later events of its key need not wait for it. */
  #isOver(position: number, owner: string): boolean {
    if (this.#actionOf(position, owner).isDone) return true
    const eventId = `e${position}`
    return this.#store.letters.some(
      (one) => one.eventId === eventId && (one.owner === owner || one.owner === this.#plan.id) && !one.parks,
    )
  }

  #actionOf(position: number, owner: string): Action {
    const name = `${position} ${owner}`
    let action = this.#actions.get(name)
    if (action === undefined) {
      action = { isDone: false }
      this.#actions.set(name, action)
    }
    return action
  }
}
