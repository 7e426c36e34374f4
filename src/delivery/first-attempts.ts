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
import { type Abortable, type Clock, retryUntil } from '../runtime/index.ts'
import type { LeftAlert, LeftLane, Leftovers, LeftRow } from '../subscriptions/index.ts'
import { Attempt } from './attempt.ts'
import type { NewDelivery, RunContext, Work } from './delivery.ts'
import { type InFlight, SLOW_MS, shareOf } from './in-flight.ts'
import type { Lease } from './lease.ts'
import { laneOf, rowOf, toLeftLetter, toLeftRow } from './left-row.ts'
import { type OutcomeParts, rule, tellDead } from './outcomes.ts'
import { createWaitingKeys } from './waiting-keys.ts'

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
  readonly inFlight: InFlight
  /** Whether this process has registered anything. */
  readonly isAble: () => boolean
  /** A row was committed that is due after this delay. */
  readonly onRow: (lane: LeftLane, delayMs: number) => void
}

export interface Reactions {
  /**
   * Adds to `left` whatever did not end well. Undefined when all of it ended at once; else the promise resolves when all of
   * it has ended.
   */
  react(reactions: readonly Reaction[], left: Leftovers, owner: Abortable): Promise<void> | undefined
  /** Call before the first event is read: another process may have read, and left rows that order depends on. */
  begin(): Promise<void>
}

/** An event is passed by then. A row that ends the process sooner would have its event read, and kept, once more. */
const PASSED_MS = 1_000
/** So many of a key wait behind each other, for so long: the rest of them waits as rows, and makes room for others. */
const MOST_IN_LINE = 64
const LONGEST_LINE_MS = 5_000

class FirstAttempt extends Attempt {
  readonly reaction: Reaction
  readonly left: Leftovers

  constructor(reaction: Reaction, left: Leftovers, owner: Abortable) {
    super(owner)
    this.reaction = reaction
    this.left = left
  }

  get work(): Work {
    return this.reaction.work
  }

  get share(): string {
    return shareOf(this.reaction.destination, this.reaction.work.name)
  }

  protected call(): unknown {
    return this.reaction.run(this)
  }

  /** What other actions of the event leave is written without waiting for this one. */
  protected override onSlow(): void {
    this.left.slow()
  }
}

export function createReactions(parts: ReactionParts): Reactions {
  const { clock, lease, inFlight, outcomes } = parts
  const { destinations } = outcomes
  const held = createWaitingKeys(parts.db, clock)
  /** The end of the last reaction of each name and key, and how many wait for theirs. */
  const lines = new Map<string, { tail: Promise<void>; length: number }>()
  /** Reactions that left a row or a letter. */
  const leavers = new WeakSet<Reaction>()

  function begin(reaction: Reaction, left: Leftovers, owner: Abortable): Promise<void> | undefined {
    if (reaction.key !== null) return inOrder(reaction, reaction.key, left, owner)
    if (mustBeRow(reaction)) return keep(reaction, left)
    const place = inFlight.take(shareOf(reaction.destination, reaction.work.name), laneOf(reaction))
    if (place === true) return attempt(reaction, left, owner)
    return place.then((hasPlace) => attemptLate(reaction, hasPlace, left, owner))
  }

  function mustBeRow({ work: { kind, name }, destination, suspect = false }: Reaction): boolean {
    return suspect || destinations.obstacle({ kind, name, destination }) !== undefined
  }

  /** After a wait: there may be no place, something may hold it back by now, or its event belongs to another owner. */
  function attemptLate(
    reaction: Reaction,
    hasPlace: boolean,
    left: Leftovers,
    owner: Abortable,
  ): Promise<void> | undefined {
    if (hasPlace && !owner.aborted && !mustBeRow(reaction)) return attempt(reaction, left, owner)
    if (hasPlace) inFlight.give(shareOf(reaction.destination, reaction.work.name))
    if (owner.aborted) throw owner.reason
    return keep(reaction, left)
  }

  /** One after the other for a key, and behind rows and dead letters of it. */
  function inOrder(reaction: Reaction, key: string, left: Leftovers, owner: Abortable): Promise<void> {
    const name = `${reaction.work.name}\u0000${key}`
    const line = lines.get(name) ?? { tail: undefined, length: 0 }
    const sinceMs = clock.monotonic()
    const ended = (line.tail ? turnAfter(line.tail, left) : Promise.resolve()).then(async () => {
      const isHeld = await retryUntil(() => held.isHeld(reaction, key), {
        clock,
        get signal() {
          return owner.signal
        },
        mayRetry: (error, attempt) => attempt < MOST_REFUSALS || classify(error) !== 'permanent',
      })
      if (owner.aborted) throw owner.reason
      const isLate = line.length >= MOST_IN_LINE && clock.monotonic() - sinceMs >= LONGEST_LINE_MS
      if (isHeld || isLate || mustBeRow(reaction)) return keep(reaction, left)
      const place = inFlight.take(shareOf(reaction.destination, reaction.work.name))
      await attemptLate(reaction, place === true || (await place), left, owner)
    })
    // The saver writes in the order in which it gets events: a row of the next one must not come before a row of this one.
    const tail = ended.then(() => (leavers.has(reaction) ? left.queued : undefined))
    line.length++
    lines.set(name, Object.assign(line, { tail }))
    const leave = () => {
      line.length--
      if (line.length === 0) lines.delete(name)
    }
    tail.then(leave, leave)
    return ended
  }

  /** While the reaction waits for a slow one of its key, what other actions of its event leave is written. */
  function turnAfter(before: Promise<void>, left: Leftovers): Promise<void> {
    const cancel = clock.setTimer(SLOW_MS, () => left.slow())
    return before.finally(cancel)
  }

  /** The reaction has its place. */
  function attempt(reaction: Reaction, left: Leftovers, owner: Abortable): Promise<void> | undefined {
    const one = new FirstAttempt(reaction, left, owner)
    let ended: Promise<void> | undefined
    try {
      ended = one.run(inFlight)
    } catch (error) {
      return failed(one, error)
    }
    if (ended) {
      return ended.then(
        () => done(one),
        (error) => failed(one, error),
      )
    }
    done(one)
    return undefined
  }

  function done({ reaction, share }: FirstAttempt): void {
    inFlight.give(share)
    outcomes.count(reaction.work.kind, 'success')
    destinations.recordSuccess(reaction.destination)
    reaction.onEnd?.({ outcome: 'success' })
  }

  async function failed({ reaction, left, owner, share, startedMs }: FirstAttempt, error: unknown): Promise<void> {
    inFlight.give(share)
    if (owner!.aborted) throw owner!.reason
    const { work, event, destination } = reaction
    const sinceFirstMs = clock.monotonic() - startedMs
    const failure = { work, destination, attempt: 1, fields: { event_id: event.id } }
    const ruling = await rule(outcomes, failure, error)
    if (ruling.kind === 'dead') return died(reaction, error, sinceFirstMs, left)
    const tried = { attempts: ruling.counts ? 1 : 0, sinceFirstMs, error: toErrorRecord(error, outcomes) }
    addRow(reaction, left, { delayMs: ruling.delayMs, tried })
    reaction.onEnd?.({ outcome: 'retry', error })
  }

  function died(reaction: Reaction, error: unknown, sinceFirstMs: number, left: Leftovers): void {
    const { work, event, destination } = reaction
    tellDead(outcomes, { work, destination, attempt: 1, fields: { event_id: event.id } }, error)
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
    left.onSettled(() => parts.onRow(row.lane, delayMs))
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
    react(reactions, left, owner) {
      let pending: Promise<void>[] | undefined
      for (const reaction of reactions) {
        const end = begin(reaction, left, owner)
        if (end === undefined) continue
        pending ??= []
        pending.push(end)
      }
      if (pending === undefined) return undefined
      return pending.length === 1 ? pending[0] : Promise.all(pending).then(() => {})
    },
  }
}
