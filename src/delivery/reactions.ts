/**
 * First attempts: what an event asks for is done right away, from the window of a subscription, and no row is written for
 * it. What did not end well is left behind as data, which the checkpoint takes along (subscriptions/saver.ts).
 *
 *   done                    nothing is left; the checkpoint says it
 *   failed                  a row that waits for the next attempt, or a dead letter
 *   slow                    the call holds its event, and nothing else: later events pass it, and what other actions of its
 *                           event leave is written at once
 *   no place for too long   a row that is due; sooner where other processes have room for it
 *   limited, paused, behind an earlier one of its key, or suspected of ending the process   a row that is due
 *   the subscription ends   calls are aborted and nothing is left: the next owner does them again
 */
import { toErrorRecord } from '../dead-letters/index.ts'
import type { AftercommitEvent } from '../events/index.ts'
import { classify, type Queryable } from '../postgres/index.ts'
import { type Clock, isThenable, LazySignal, retryUntil } from '../runtime/index.ts'
import type { LeftAlert, Leftovers, LeftRow } from '../subscriptions/index.ts'
import type { NewDelivery, RunContext, Work } from './delivery.ts'
import { decideOutcome } from './failure.ts'
import { createHeldKeys } from './held-keys.ts'
import type { Lease } from './lease.ts'
import { laneOf, rowOf, toLeftLetter, toLeftRow } from './left-row.ts'
import { createNursery } from './nursery.ts'
import type { OutcomeParts } from './outcomes.ts'
import { timedOut } from './run.ts'
import type { SharedPlaces } from './shared-places.ts'
import { createSlots } from './slots.ts'
import type { Surplus } from './surplus.ts'

/** A migration under way may refuse for a moment what is right. */
const MOST_REFUSALS = 6

/** One thing that an event asks for. */
export interface Reaction {
  readonly work: Work
  /** The event that asked for it. */
  readonly event: AftercommitEvent
  /** The owner of its dead letter. */
  readonly owner: string
  readonly destination: string
  readonly tenant: string
  /** Reactions of one name and key run in order; null for none. */
  readonly key: string | null
  /** -1 while catching up. */
  readonly priority: number
  /** Reactions that become rows of the same key as soon as the row of this one ends. */
  readonly followers?: readonly Pick<Reaction, 'work' | 'owner'>[]
  /** Its event may be what ended the process before. Rows are begun one at a time then, so only the culprit is given up. */
  readonly suspect?: boolean
  /** The first attempt. */
  run(context: Pick<RunContext, 'signal'>): unknown
  /** JSON that later attempts need, made when there is a row or a letter. */
  payload(): unknown
  /** The next action of a sequence and the alert that follow when the first attempt is given up. */
  afterDeath?(error: unknown): { readonly next: NewDelivery | undefined; readonly alert: LeftAlert | undefined }
  /** The first attempt ended. */
  onEnd?(end: ReactionEnd): void
}

/** How the first attempt ended: done, to be tried again, dead, or kept as a row because it could not begin. */
export interface ReactionEnd {
  readonly outcome: 'success' | 'retry' | 'dead' | 'kept'
  readonly error?: unknown
}

export interface ReactionParts {
  readonly db: Queryable
  readonly clock: Clock
  readonly lease: Lease
  readonly outcomes: OutcomeParts
  readonly places: SharedPlaces
  readonly mostPerDestination: number
  readonly surplus?: Surplus
  /** Whether this process has registered anything. */
  readonly isAble: () => boolean
  /** A row was committed that is due after this delay. */
  readonly onRow: (destination: string, delayMs: number) => void
}

export interface Reactions {
  /**
   * Adds to `left` whatever did not end well. Undefined when all of it ended at once; else the promise resolves when all of
   * it has ended.
   */
  react(reactions: readonly Reaction[], left: Leftovers, signal: () => AbortSignal): Promise<void> | undefined
  /** Call before the first event is read: another process may have read, and left rows that order depends on. */
  begin(): Promise<void>
}

/** From then on a call counts as slow: destinations with slow calls share half of the places. */
const SLOW_MS = 1_000
/** An event is passed by then. A row that ends the process sooner would have its event read, and kept, once more. */
const PASSED_MS = 1_000

/** A first attempt that returned a promise. */
class Call extends LazySignal {
  startedMs: number | undefined
}

export function createReactions(parts: ReactionParts): Reactions {
  const { clock, lease, outcomes } = parts
  const { trouble, logger } = outcomes
  const held = createHeldKeys(parts.db, clock)
  const slots = createSlots(clock, parts.places, parts.mostPerDestination, parts.surplus)
  const nursery = createNursery()
  /** The end of the last reaction of each name and key. */
  const tails = new Map<string, Promise<void>>()
  /** Reactions that left a row or a letter. */
  const leavers = new WeakSet<Reaction>()

  function begin(reaction: Reaction, left: Leftovers, signal: () => AbortSignal): Promise<void> | undefined {
    if (reaction.key !== null) return inOrder(reaction, reaction.key, left, signal)
    if (mustWait(reaction)) return keep(reaction, left)
    const slot = slots.take(placeOf(reaction), laneOf(reaction))
    return slot === true
      ? attempt(reaction, left, signal)
      : slot.then((isOurs) => attemptLate(reaction, isOurs, left, signal))
  }

  /** Paused, limited or hanging, or not known to be none of it: without a lease no news of pauses arrives. */
  function mustWait(reaction: Reaction): boolean {
    const { work, destination, suspect = false } = reaction
    if (suspect || !lease.isInformed || lease.isPaused(work.kind, work.name, destination)) return true
    return trouble.isGuarded(destination) || slots.isHanging(placeOf(reaction))
  }

  /** After a wait: there may be no place, something may hold it back by now, or its event belongs to another owner. */
  function attemptLate(
    reaction: Reaction,
    isOurs: boolean,
    left: Leftovers,
    signal: () => AbortSignal,
  ): Promise<void> | undefined {
    const isOver = signal().aborted
    if (isOurs && !isOver && !mustWait(reaction)) return attempt(reaction, left, signal)
    if (isOurs) slots.give(placeOf(reaction))
    if (isOver) throw signal().reason
    return keep(reaction, left)
  }

  /** One after the other for a key, and behind rows and dead letters of it. */
  function inOrder(reaction: Reaction, key: string, left: Leftovers, signal: () => AbortSignal): Promise<void> {
    const name = `${reaction.work.name}\u0000${key}`
    const before = tails.get(name)
    const ended = (before ? turnAfter(before, left) : Promise.resolve()).then(async () => {
      const isHeld = await retryUntil(() => held.isHeld(reaction, key), {
        clock,
        get signal() {
          return signal()
        },
        mayRetry: (error, attempt) => attempt < MOST_REFUSALS || classify(error) !== 'permanent',
      })
      if (signal().aborted) throw signal().reason
      if (isHeld || mustWait(reaction)) return keep(reaction, left)
      await attemptLate(reaction, await slots.take(placeOf(reaction)), left, signal)
    })
    // The saver writes in the order in which it gets events: a row of the next one must not come before a row of this one.
    const tail = ended.then(() => (leavers.has(reaction) ? left.queued : undefined))
    tails.set(name, tail)
    const forget = () => {
      if (tails.get(name) === tail) tails.delete(name)
    }
    tail.then(forget, forget)
    return ended
  }

  /** While the reaction waits for a slow one of its key, what other actions of its event leave is written. */
  function turnAfter(before: Promise<void>, left: Leftovers): Promise<void> {
    const cancel = clock.setTimer(SLOW_MS, () => left.slow())
    return before.finally(cancel)
  }

  /** The reaction has its place. */
  function attempt(reaction: Reaction, left: Leftovers, signal: () => AbortSignal): Promise<void> | undefined {
    const call = new Call()
    let result: unknown
    try {
      result = reaction.run(call)
    } catch (error) {
      slots.give(placeOf(reaction))
      return failed(reaction, call, error, left, signal)
    }
    if (isThenable(result)) return watch(reaction, call, result, left, signal)
    slots.give(placeOf(reaction))
    done(reaction)
    return undefined
  }

  /** Resolves when the call has ended. */
  function watch(
    reaction: Reaction,
    call: Call,
    result: PromiseLike<unknown>,
    left: Leftovers,
    signal: () => AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      let release = () => {}
      let isOver = false
      const end = (error?: unknown) => {
        if (isOver) return
        isOver = true
        release()
        slots.give(placeOf(reaction))
        if (error !== undefined) return void failed(reaction, call, error, left, signal).then(resolve, reject)
        done(reaction)
        resolve()
      }
      nursery.add(() => {
        if (isOver) return
        if (signal().aborted) {
          call.abort(signal().reason)
          end(signal().reason)
        } else release = guard(reaction, call, left, signal, end)
      })
      call.startedMs = clock.monotonic()
      result.then(
        () => end(),
        (error) => end(error ?? new Error('rejected with nothing')),
      )
    })
  }

  /** A call that did not end at once is aborted with its subscription, timed, and counted as slow after a while. */
  function guard(
    reaction: Reaction,
    call: Call,
    left: Leftovers,
    signal: () => AbortSignal,
    end: (error: unknown) => void,
  ): () => void {
    const { work } = reaction
    const ending = signal()
    const onAbort = () => {
      call.abort(ending.reason)
      end(ending.reason)
    }
    let endSlow = () => {}
    const cancelSlow = clock.setTimer(SLOW_MS, () => {
      endSlow = slots.slow(placeOf(reaction))
      left.slow()
    })
    const cancelTimeout = clock.setTimer(work.timeoutMs, () => {
      const error = timedOut(work)
      call.abort(error)
      end(error)
    })
    ending.addEventListener('abort', onAbort, { once: true })
    return () => {
      ending.removeEventListener('abort', onAbort)
      cancelSlow()
      cancelTimeout()
      endSlow()
    }
  }

  function done(reaction: Reaction): void {
    outcomes.count(reaction.work.kind, 'success')
    trouble.forgive(reaction.destination)
    reaction.onEnd?.({ outcome: 'success' })
  }

  async function failed(
    reaction: Reaction,
    call: Call,
    error: unknown,
    left: Leftovers,
    signal: () => AbortSignal,
  ): Promise<void> {
    if (signal().aborted) throw signal().reason
    const { work, destination } = reaction
    const sinceFirstMs = call.startedMs === undefined ? 0 : clock.monotonic() - call.startedMs
    await trouble.blame({ kind: work.kind, name: work.name, destination }, error)
    const outcome = decideOutcome({ error, attempt: 1 }, work.retry)
    if (outcome.kind === 'dead') return died(reaction, error, sinceFirstMs, left)
    outcomes.count(work.kind, 'retry')
    const tried = { attempts: outcome.counts ? 1 : 0, sinceFirstMs, error: toErrorRecord(error, outcomes) }
    addRow(reaction, left, { delayMs: outcome.delayMs, tried })
    reaction.onEnd?.({ outcome: 'retry', error })
  }

  function died(reaction: Reaction, error: unknown, sinceFirstMs: number, left: Leftovers): void {
    const { work, event, destination } = reaction
    outcomes.count(work.kind, 'dead')
    logger.error(
      {
        ...{ event_id: event.id, kind: work.kind, name: work.name, attempt: 1 },
        ...(destination !== '' && { destination }),
        err: error,
      },
      work.discards ? 'delivery was given up' : 'delivery became a dead letter',
    )
    if (!work.discards) {
      const told = toErrorRecord(work.toLetterError?.(error, 1) ?? error, outcomes)
      left.letters.push(toLeftLetter(reaction, event, { error: told, sinceFirstMs }))
      hold(reaction, left, work.name)
    }
    const { next, alert } = reaction.afterDeath?.(error) ?? {}
    if (next) add(reaction, left, rowOf(next, event), 0)
    if (alert) left.alerts.push(alert)
    if (!work.discards || next || alert) ends(reaction, left)
    reaction.onEnd?.({ outcome: 'dead', error })
  }

  /** Not begun: a row that is due. */
  function keep(reaction: Reaction, left: Leftovers): undefined {
    addRow(reaction, left, { delayMs: reaction.suspect ? PASSED_MS : 0 })
    reaction.onEnd?.({ outcome: 'kept' })
  }

  function addRow(reaction: Reaction, left: Leftovers, words: Pick<LeftRow, 'delayMs' | 'tried'>): void {
    add(reaction, left, toLeftRow(reaction, words), words.delayMs)
    ends(reaction, left)
  }

  function add(reaction: Reaction, left: Leftovers, row: LeftRow, delayMs: number): void {
    left.rows.push(row)
    hold(reaction, left, row.lane.name)
    left.onSettled(() => parts.onRow(row.lane.destination, delayMs))
  }

  /** Later ones of the key wait behind it. */
  function hold({ key }: Reaction, left: Leftovers, name: string): void {
    if (key !== null) left.onSettled(held.hold(name, key))
  }

  function ends(reaction: Reaction, left: Leftovers): void {
    leavers.add(reaction)
    left.ended(reaction.owner)
  }

  return {
    async begin() {
      // A process that has registered nothing has no lease, and hears no news.
      if (parts.isAble()) await lease.untilInformed()
      await held.load()
    },
    react(reactions, left, signal) {
      let pending: Promise<void>[] | undefined
      for (const reaction of reactions) {
        const end = begin(reaction, left, signal)
        if (end === undefined) continue
        pending ??= []
        pending.push(end)
      }
      if (pending === undefined) return undefined
      return pending.length === 1 ? pending[0] : Promise.all(pending).then(() => {})
    },
  }
}

/** Whose share of the places it takes: work without a destination has a share by its name. */
function placeOf({ destination, work }: Reaction): string {
  return destination === '' ? work.name : destination
}
