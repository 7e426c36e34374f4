/** The outside world: handlers and receivers that succeed, fail, take long, hang, or end their process. */
import type { AnyEvent } from '../../src/log/index.ts'
import type { CallContext } from '../../src/subscriptions/handler-call.ts'
import { type HandlerContext, Leftovers, type LeftRow } from '../../src/subscriptions/index.ts'
import { REFUSED } from './database/saves.ts'
import { type Ledger, ownerOf } from './ledger.ts'
import type { Plan } from './plan.ts'
import type { Process } from './process.ts'
import type { Random } from './random.ts'

/** How calls of one event, or of one of its actions, go. */
interface Fate {
  readonly kind: 'good' | 'poison' | 'hanging'
  isAtOnce: boolean
  isSlow: boolean
  /** So many calls fail, end the process, or hang, before one is good. */
  failures: number
  deaths: number
  readonly refused: 'row' | 'run' | undefined
}

export class Handlers {
  readonly #plan: Plan
  readonly #random: Random
  readonly #isHealed: () => boolean
  readonly #kill: (process: Process) => void
  readonly #fates = new Map<string, Fate>()
  #poison = 0
  #deadly = 0

  constructor(plan: Plan, random: Random, isHealed: () => boolean, kill: (process: Process) => void) {
    this.#plan = plan
    this.#random = random
    this.#isHealed = isHealed
    this.#kill = kill
  }

  /** The handler of a plain subscription. */
  handle(process: Process, ledger: Ledger, term: number, event: AnyEvent, context: HandlerContext): unknown {
    return this.#call(process, ledger, term, event, context, undefined)
  }

  /** The handler of an observer: each action is called, and leaves a row when that fails. */
  observe(process: Process, ledger: Ledger, term: number, event: AnyEvent, context: HandlerContext): unknown {
    const { leaving } = context as CallContext
    const left = new Leftovers(leaving?.writeEarly)
    const settled = leaving?.settled ?? []
    const pending: Promise<void>[] = []
    for (let n = 1; n <= ledger.plan.actions; n++) {
      const owner = ownerOf(ledger.plan, n)
      if (settled.includes(owner)) continue
      const failed = () => {
        left.rows.push(this.#rowOf(event, owner))
        left.ended(owner)
      }
      try {
        const called = this.#call(process, ledger, term, event, context, owner)
        if (called instanceof Promise) {
          const cancel = process.after(1_000, () => left.slow())
          pending.push(
            called.finally(cancel).catch((error) => {
              if (context.signal.aborted) throw error
              failed()
            }),
          )
        }
      } catch {
        failed()
      }
    }
    const fate = this.#fateOf(`${ledger.plan.id} ${event.id}`)
    const finish = () => {
      if (fate.refused === 'run') left.runs.push(REFUSED.run as unknown as object)
      return left
    }
    if (pending.length === 0) return left.isEmpty ? undefined : finish()
    return Promise.allSettled(pending).then((ends) => {
      const failed = ends.find((end) => end.status === 'rejected')
      if (!failed) return finish()
      left.drop()
      throw failed.reason
    })
  }

  #call(
    process: Process,
    ledger: Ledger,
    term: number,
    event: AnyEvent,
    context: HandlerContext,
    owner: string | undefined,
  ): unknown {
    if (process.isDead) return new Promise(() => {})
    const fate = this.#fateOf(`${owner ?? ledger.plan.id} ${event.id}`, owner === undefined)
    const call = ledger.begins(event, term, context.redriven, owner)
    process.calls.add(call)
    const end = (isGood: boolean) => {
      process.calls.delete(call)
      ledger.ends(call, isGood)
    }
    process.world.note(() => `${process.name}: call of ${owner ?? ledger.plan.id} with ${event.id}, term ${term}`)
    if (fate.deaths > 0) {
      fate.deaths--
      ledger.goesOn(call)
      this.#kill(process)
      return new Promise(() => {})
    }
    const fails = fate.kind === 'poison' || fate.failures > 0
    if (fate.failures > 0) fate.failures--
    if (fate.isAtOnce) {
      end(!fails)
      if (fails) throw new Error('this call fails')
      return undefined
    }
    ledger.goesOn(call)
    const hangs = fate.kind === 'hanging' && fails
    return new Promise<void>((resolve, reject) => {
      const finish = (isGood: boolean) => {
        // The owner gave the call up: how it ends is heard by nobody.
        const isHeard = !context.signal.aborted
        process.world.note(() => `${process.name}: end of ${owner ?? ledger.plan.id} with ${event.id}: ${isGood}`)
        end(isGood && isHeard)
        if (isGood) resolve()
        else reject(new Error('this call fails'))
      }
      if (!hangs) {
        process.after(this.#random.next() * (fate.isSlow ? 4_000 : 10), () => finish(!fails))
        return
      }
      const abandon = () => {
        ledger.ends(call, false)
        process.after(this.#random.next() * 1_000, () => finish(false))
      }
      if (context.signal.aborted) abandon()
      else context.signal.addEventListener('abort', abandon, { once: true })
    })
  }

  #rowOf(event: AnyEvent, owner: string): LeftRow {
    const { refused } = this.#fateOf(`${owner} ${event.id}`)
    return {
      lane: { kind: 'action', name: owner, destination: '', tenant: '', priority: 0 },
      owner,
      key: null,
      eventId: event.id,
      payload: JSON.stringify(refused === 'row' ? REFUSED.row : 'accepted'),
      delayMs: 0,
    }
  }

  #fateOf(name: string, mayHang = false): Fate {
    const known = this.#fates.get(name)
    if (known) return known
    const random = this.#random
    const { fates } = this.#plan
    const isPoison = this.#poison < fates.poison && random.chance(0.1)
    if (isPoison) this.#poison++
    const isDeadly = this.#deadly < fates.deadly && random.chance(0.1)
    if (isDeadly) this.#deadly++
    const isHanging = mayHang && !isPoison && !this.#isHealed() && random.chance(fates.hanging)
    // With events that never succeed, a streak of others that ran out of attempts would make the subscription wait for ever.
    const fate: Fate = {
      kind: isPoison ? 'poison' : isHanging ? 'hanging' : 'good',
      isAtOnce: !isHanging && random.chance(fates.atOnce),
      isSlow: random.chance(fates.slow),
      failures: isHanging ? 1 : random.chance(fates.flaky) ? random.whole(1, fates.poison > 0 ? 2 : 4) : 0,
      deaths: isDeadly ? random.whole(1, 9) : 0,
      refused: random.chance(fates.refusedContent) ? random.pick(['row', 'run'] as const) : undefined,
    }
    this.#fates.set(name, fate)
    return fate
  }
}
