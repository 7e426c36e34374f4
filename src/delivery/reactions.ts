/**
 * The hot path: what an event asks for is done right away, from the window of a subscription, and nothing is written for
 * it. Only what cannot end now becomes a row: a failed attempt that waits for its next one, a call that would hold the
 * window, a destination that is limited or in trouble, a paused name, a key that has to wait for an earlier one, an event
 * that may be what ended the process before.
 *
 *   done at once            nothing is written; the checkpoint says it
 *   failed                  a row that waits, or a dead letter; then the event is passed
 *   slow                    a row that is already claimed by this worker; the event is passed while the call goes on.
 *                           Without a row, because the database takes none, the call holds its event
 *   no slot for too long    a row that is due
 *   the subscription ends   calls are aborted and nothing is written: whoever reads on does them again
 */
import type { Queryable } from '../postgres/index.ts'
import { type Clock, isThenable } from '../runtime/index.ts'
import type { RunContext, Work } from './delivery.ts'
import { decideOutcome } from './failure.ts'
import { createHeldKeys } from './held-keys.ts'
import { HotCall } from './hot-call.ts'
import { createKeeping } from './keeping.ts'
import type { Lanes } from './lanes.ts'
import type { Lease } from './lease.ts'
import { createNursery } from './nursery.ts'
import { bury, fail, type OutcomeParts, succeed, toStoredError } from './outcomes.ts'
import { type Run, timedOut } from './run.ts'
import { createSlots } from './slots.ts'

/** One thing that an event asks for. */
export interface Reaction {
  readonly work: Work
  /** The event that asked for it. */
  readonly eventId: string
  /** Whose dead letter it would be. */
  readonly owner: string
  readonly destination: string
  readonly tenant: string
  /** What order goes by; null for none. */
  readonly key: string | null
  /** -1 for what is caught up on. */
  readonly priority: number
  /** What becomes a row of the same key as soon as the row of this one ends. */
  readonly followers?: readonly Pick<Reaction, 'work' | 'owner'>[]
  /** Its event may be what ended the process before. Rows are begun one at a time then, so only the culprit is given up. */
  readonly suspect?: boolean
  /** The first attempt, with what is at hand. */
  run(context: RunContext): unknown
  /** What later attempts need to know, as JSON. Asked for when a row is made. */
  payload(): unknown
  /** The first attempt had become a row and succeeded: what follows, and the end of the row if it is one with it. */
  conclude?(context: RunContext): Promise<void>
  /** It ended here, at its first attempt. */
  onEnd?(end: ReactionEnd): void
}

/** How the first attempt ended: done, to be tried again, dead, or kept as a row before it could be begun or had ended. */
export interface ReactionEnd {
  readonly outcome: 'success' | 'retry' | 'dead' | 'kept'
  readonly error?: unknown
}

export interface ReactionParts {
  readonly db: Queryable
  readonly clock: Clock
  readonly lanes: Lanes
  readonly lease: Lease
  readonly outcomes: OutcomeParts
  readonly concurrency: number
  readonly mostPerDestination: number
  /** Whether this process can do anything. */
  readonly isAble: () => boolean
  /** The row of this call may be cancelled from now on, until what it returns is called. */
  readonly hold: (run: Run) => () => void
  /** A row was made that is due after this delay. */
  readonly onSpilled: (destination: string, delayMs: number) => void
  /** A row may have been made with this token, and nobody works on it. */
  readonly onDoubt: (token: bigint) => void
}

export interface Reactions {
  /** Undefined when everything was done at once; else resolves when all of it is done or kept. */
  react(reactions: readonly Reaction[], signal: () => AbortSignal): Promise<void> | undefined
  /** Before the first event is read: another process may have read, and left rows that order depends on. */
  begin(): Promise<void>
}

/** A call that takes longer no longer holds its event. */
const SLOW_MS = 1_000
/** An event is passed by then. A row that ends the process sooner would have its event read, and kept, once more. */
const PASSED_MS = 1_000

export function createReactions(parts: ReactionParts): Reactions {
  const { clock, lease, outcomes } = parts
  const { trouble } = outcomes
  const held = createHeldKeys(parts.db, clock)
  const keeping = createKeeping(parts, held)
  const slots = createSlots(clock, parts.concurrency, parts.mostPerDestination)
  const nursery = createNursery()
  /** The end of the last one of each key that is under way here. */
  const tails = new Map<string, Promise<void>>()

  function begin(reaction: Reaction, signal: () => AbortSignal): Promise<void> | undefined {
    const { key } = reaction
    if (key !== null) return inOrder(reaction, key, signal)
    if (mustWait(reaction)) return keep(reaction, signal)
    const slot = slots.take(placeOf(reaction))
    return slot === true ? attempt(reaction, signal) : slot.then((isOurs) => attemptLate(reaction, isOurs, signal))
  }

  /** Paused, limited or hanging, or not known to be none of it: without a lease nobody waits for our word. */
  function mustWait(reaction: Reaction): boolean {
    const { work, destination, suspect = false } = reaction
    if (suspect || !lease.isInformed || lease.isPaused(work.kind, work.name, destination)) return true
    return trouble.isGuarded(destination) || slots.isHanging(placeOf(reaction))
  }

  /** After a while: there may be no slot, what was right may have changed meanwhile, or it is somebody else's event. */
  function attemptLate(reaction: Reaction, isOurs: boolean, signal: () => AbortSignal): Promise<void> | undefined {
    const isOver = signal().aborted
    if (isOurs && !isOver && !mustWait(reaction)) return attempt(reaction, signal)
    if (isOurs) slots.give(placeOf(reaction))
    if (isOver) throw signal().reason
    return keep(reaction, signal)
  }

  /** One after the other for a key, and behind what waits in the database. */
  function inOrder(reaction: Reaction, key: string, signal: () => AbortSignal): Promise<void> {
    const name = `${reaction.work.name}\u0000${key}`
    const run = async () => {
      const isHeld = await keeping.persistently(reaction, signal, () => held.isHeld(reaction, key))
      if (signal().aborted) throw signal().reason
      if (isHeld || mustWait(reaction)) return keep(reaction, signal)
      const isOurs = await slots.take(placeOf(reaction))
      await attemptLate(reaction, isOurs, signal)
    }
    const tail = (tails.get(name) ?? Promise.resolve()).then(run)
    tails.set(name, tail)
    const forget = () => {
      if (tails.get(name) === tail) tails.delete(name)
    }
    tail.then(forget, forget)
    return tail
  }

  /** The slot is ours. */
  function attempt(reaction: Reaction, signal: () => AbortSignal): Promise<void> | undefined {
    const call = new HotCall()
    let result: unknown
    try {
      result = reaction.run(call)
    } catch (error) {
      slots.give(placeOf(reaction))
      return failed(reaction, call, error, signal)
    }
    if (!isThenable(result)) {
      slots.give(placeOf(reaction))
      done(reaction)
      return undefined
    }
    return watch(reaction, call, result, signal)
  }

  /** Resolves when the call has ended and that is kept, or when it is slow and a row stands for it. */
  function watch(
    reaction: Reaction,
    call: HotCall,
    result: PromiseLike<unknown>,
    signal: () => AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      let row: Promise<Run | undefined> | undefined
      let release = () => {}
      let letGo = () => {}
      let notSlow = () => {}
      let isOver = false
      const end = (error?: unknown) => {
        if (isOver) return
        isOver = true
        release()
        notSlow()
        slots.give(placeOf(reaction))
        // Held until its end is written: a stop waits for that.
        settle(reaction, call, row, error, signal)
          .finally(() => letGo())
          .then(resolve, reject)
      }
      nursery.add(() => {
        if (isOver) return
        release = guard(reaction, call, signal, end, () => {
          const unmark = slots.slow(placeOf(reaction))
          const ended = new AbortController()
          notSlow = () => {
            unmark()
            ended.abort()
          }
          row = keeping.claimSlow(reaction, call, ended.signal)
          void row.then((run) => {
            if (!run) return
            letGo = hold(run, call)
            reaction.onEnd?.({ outcome: 'kept' })
            resolve()
          })
        })
      })
      call.begin(clock)
      result.then(
        () => end(),
        (error) => end(error ?? new Error('rejected with nothing')),
      )
    })
  }

  /** A call that lost its row is told by its own signal. */
  function hold(run: Run, call: HotCall): () => void {
    run.signal.addEventListener('abort', () => call.abort(run.signal.reason), { once: true })
    return parts.hold(run)
  }

  /** A call that did not end at once is aborted with its subscription, timed, and kept as a row when it is slow. */
  function guard(
    { work }: Reaction,
    call: HotCall,
    signal: () => AbortSignal,
    end: (error: unknown) => void,
    onSlow: () => void,
  ): () => void {
    const ending = signal()
    const onAbort = () => {
      call.abort(ending.reason)
      end(ending.reason)
    }
    if (ending.aborted) onAbort()
    ending.addEventListener('abort', onAbort, { once: true })
    const cancelSlow = clock.setTimer(SLOW_MS, () => {
      if (!ending.aborted) onSlow()
    })
    const cancelTimeout = clock.setTimer(work.timeoutMs, () => {
      const error = timedOut(work)
      call.abort(error)
      end(error)
    })
    return () => {
      ending.removeEventListener('abort', onAbort)
      cancelSlow()
      cancelTimeout()
    }
  }

  async function settle(
    reaction: Reaction,
    call: HotCall,
    row: Promise<Run | undefined> | undefined,
    error: unknown,
    signal: () => AbortSignal,
  ): Promise<void> {
    const run = row && (await row)
    if (run) return settleRow(reaction, run, error)
    if (error !== undefined) return failed(reaction, call, error, signal)
    done(reaction)
  }

  function done(reaction: Reaction): void {
    outcomes.count(reaction.work.kind, 'success')
    trouble.forgive(reaction.destination)
    reaction.onEnd?.({ outcome: 'success' })
  }

  async function settleRow(reaction: Reaction, run: Run, error: unknown): Promise<void> {
    if (error !== undefined) return fail(outcomes, run, error)
    if (run.lost) return
    try {
      await reaction.conclude?.(run)
    } catch (fault) {
      return fail(outcomes, run, fault)
    }
    succeed(outcomes, run)
  }

  async function failed(reaction: Reaction, call: HotCall, error: unknown, signal: () => AbortSignal): Promise<void> {
    if (signal().aborted) throw signal().reason
    const { work, destination } = reaction
    await trouble.blame({ kind: work.kind, name: work.name, destination }, error)
    const outcome = decideOutcome({ error, attempt: 1 }, work.retry)
    if (outcome.kind === 'dead') {
      await bury(outcomes, await keeping.claim(reaction, call, signal), error)
      reaction.onEnd?.({ outcome: 'dead', error })
      return
    }
    outcomes.count(work.kind, 'retry')
    const tried = {
      attempts: outcome.counts ? 1 : 0,
      sinceFirstMs: call.sinceMs(clock),
      error: toStoredError(outcomes, error),
    }
    await keeping.add(reaction, { delayMs: outcome.delayMs, tried }, signal)
    reaction.onEnd?.({ outcome: 'retry', error })
  }

  /** Not begun: a row that is due. */
  async function keep(reaction: Reaction, signal: () => AbortSignal): Promise<void> {
    await keeping.add(reaction, { delayMs: reaction.suspect ? PASSED_MS : 0 }, signal)
    reaction.onEnd?.({ outcome: 'kept' })
  }

  return {
    async begin() {
      // Where nothing can be done there is no lease, and nothing to hear.
      if (parts.isAble()) await lease.untilInformed()
      await held.load()
    },
    react(reactions, signal) {
      let pending: Promise<void>[] | undefined
      for (const reaction of reactions) {
        const end = begin(reaction, signal)
        if (end === undefined) continue
        pending ??= []
        pending.push(end)
      }
      if (pending === undefined) return undefined
      return pending.length === 1 ? pending[0] : Promise.all(pending).then(() => {})
    },
  }
}

/** Whose share of the slots it takes: work without a destination is one of its own. */
function placeOf({ destination, work }: Reaction): string {
  return destination === '' ? work.name : destination
}
