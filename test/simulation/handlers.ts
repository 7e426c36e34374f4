/** The outside world: handlers and receivers that succeed, fail, take long, hang, or end their process. */
import type { AnyEvent } from '../../src/log/index.ts'
import type { HandlerContext } from '../../src/subscriptions/index.ts'
import { REFUSED } from './database/saves.ts'
import type { Ledger, LedgerCall } from './ledger.ts'
import type { Plan } from './plan.ts'
import type { Process } from './process.ts'
import type { Random } from './random.ts'

/** How calls of one event, or of one of its actions, go. */
interface Fate {
  /** It never succeeds. */
  readonly isPoison: boolean
  readonly isAtOnce: boolean
  readonly isSlow: boolean
  /** So many calls hang, fail, or end the process, before one is good. */
  hangs: number
  failures: number
  deaths: number
  /** What an error says. */
  readonly error: string
}

export interface CallParts {
  readonly process: Process
  readonly ledger: Ledger
  readonly call: LedgerCall
  readonly event: AnyEvent
  /** Fires when the call is given up. */
  readonly signal: () => AbortSignal
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
    if (process.isDead) return NEVER
    const call = ledger.begins(event, term, process.name, context.redriven)
    return this.call({ process, ledger, call, event, signal: () => context.signal })
  }

  /** What the code under test calls has begun: returns, throws or gives a promise, as it was decided for this event. */
  call({ process, ledger, call, event, signal }: CallParts): unknown {
    const { world } = process
    const what = `${call.owner ?? ledger.plan.id} with ${event.id}`
    const fate = this.#fateOf(what)
    world.note(() => `${process.name}: call of ${what}${call.term > 0 ? `, term ${call.term}` : ''}`)
    if (fate.deaths > 0) {
      fate.deaths--
      this.#kill(process)
      return NEVER
    }
    if (fate.hangs > 0) {
      fate.hangs--
      ledger.goesOn(call)
      return this.#hang(process, ledger, call, signal())
    }
    const isGood = !fate.isPoison && fate.failures === 0
    if (fate.failures > 0) fate.failures--
    if (fate.isAtOnce) {
      ledger.ends(call, isGood)
      if (!isGood) throw new Error(fate.error)
      return undefined
    }
    ledger.goesOn(call)
    return new Promise<void>((resolve, reject) => {
      process.after(this.#random.next() * (fate.isSlow ? 4_000 : 10), () => {
        world.note(() => `${process.name}: end of ${what}: ${isGood ? 'good' : 'failed'}`)
        // Of a call that was given up nobody hears how it ends.
        ledger.ends(call, isGood && !signal().aborted)
        if (isGood) resolve()
        else reject(new Error(fate.error))
      })
    })
  }

  #hang(process: Process, ledger: Ledger, call: LedgerCall, signal: AbortSignal): Promise<void> {
    return new Promise((_, reject) => {
      const abandon = () => {
        ledger.ends(call, false)
        process.after(this.#random.next() * 1_000, () => reject(new Error('given up')))
      }
      if (signal.aborted) abandon()
      else signal.addEventListener('abort', abandon, { once: true })
    })
  }

  #fateOf(name: string): Fate {
    const known = this.#fates.get(name)
    if (known) return known
    const random = this.#random
    const { fates } = this.#plan
    const isPoison = this.#poison < fates.poison && random.chance(0.1)
    if (isPoison) this.#poison++
    const isDeadly = this.#deadly < fates.deadly && random.chance(0.1)
    if (isDeadly) this.#deadly++
    const hangs = !isPoison && !this.#isHealed() && random.chance(fates.hanging) ? 1 : 0
    // With events that never succeed, a streak of others that ran out of attempts would make the subscription wait for ever.
    const failures = random.chance(fates.flaky) ? random.whole(1, fates.poison > 0 ? 2 - hangs : 4) : 0
    const fate: Fate = {
      isPoison,
      isAtOnce: hangs === 0 && random.chance(fates.atOnce),
      isSlow: random.chance(fates.slow),
      hangs,
      failures,
      deaths: isDeadly ? random.whole(1, 9) : 0,
      error: random.chance(fates.refusedContent) ? random.pick([REFUSED.row, REFUSED.run]) : 'this call fails',
    }
    this.#fates.set(name, fate)
    return fate
  }
}

/** The answer in a process that is gone. */
const NEVER = new Promise<never>(() => {})
