/**
 * Asks the database for due work: when, how much, and for what. What a look can find, failures first:
 *
 *   no answer            whether something was claimed is not known: the token is doubted, and what it may have is given back
 *   the lease was lost   somebody else may look for it already: given back too
 *   it was cancelled     while the answer was under way: whoever did so relies on it, and it is left out
 *   no room              nothing is asked; when room comes, or after a while. What is done with is said all the same, for
 *                        limits that others wait for
 *   nothing that may be  something is due, and waits for a limit or an earlier one of its key: whatever ends is a reason to
 *   done now             look again
 *   nothing due          rests until the next one is, or until it is told of one
 */
import type { Database } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'
import { type ClaimSize, createClaimSize, LONGEST_REST_MS } from './claim-size.ts'
import type { InFlight } from './in-flight.ts'
import type { Lanes } from './lanes.ts'
import type { Lease } from './lease.ts'
import { type Claim, type ClaimedRow, claimDeliveries, selectHeld } from './statements.ts'
import { newToken } from './token.ts'
import { createUnansweredClaims, type UnansweredClaims } from './unanswered-claims.ts'
import { noteRunning } from './worker-statements.ts'

export interface ClaimerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly lanes: Lanes
  readonly lease: Lease
  readonly inFlight: InFlight
  /** Whether the bell will ring for new work; if not, it is looked for. */
  readonly willHear: () => boolean
  /** Ends the rest of whoever looks. */
  readonly wake: () => void
}

export interface Look {
  readonly rows: readonly ClaimedRow[]
  /** How long to rest; 0: there may be more. */
  readonly restMs: number
}

export class Claimer {
  readonly #options: ClaimerOptions
  readonly #size: ClaimSize
  readonly #unanswered: UnansweredClaims
  /** JSON: what this process can do. */
  names = '[]'
  #quiet = false
  /** Something is due that could not be had at the last look. */
  #blocked = false
  #claimedAt = Number.NEGATIVE_INFINITY
  /** When it was last said how many are worked on for each destination. */
  #saidAt = Number.NEGATIVE_INFINITY
  /** Not before this time is looked for what dead workers left. */
  #suspectsAt = Number.NEGATIVE_INFINITY
  /** How often something may have been cancelled. */
  #cancels = 0
  /** When somebody asked to look next, and how to take that back. */
  #lookAt = Number.POSITIVE_INFINITY
  #cancelLook = () => {}

  constructor(options: ClaimerOptions) {
    this.#options = options
    this.#size = createClaimSize(options.inFlight.most)
    this.#unanswered = createUnansweredClaims(options.database.control, options.clock)
  }

  /** The last look left nothing that could be had, and nobody has said since that there is something. */
  get isQuiet(): boolean {
    return this.#quiet
  }

  /** There may be something to do. */
  look(): void {
    this.#quiet = false
    this.#options.wake()
  }

  /** Something is due by then that the last look could not know of. */
  lookWithin(ms: number): void {
    const { clock, wake } = this.#options
    const at = clock.monotonic() + ms
    if (at >= this.#lookAt || ms >= LONGEST_REST_MS) return
    this.#cancelLook()
    this.#lookAt = at
    this.#cancelLook = clock.setTimer(ms, wake)
  }

  /** Something is due that the last look could not know of, and waits for the end of something here. */
  block(): void {
    this.#block(true)
    this.lookWithin(HELD_BACK_MS)
  }

  #block(isBlocked: boolean): void {
    this.#blocked = isBlocked
    this.#options.inFlight.areHeldBack = isBlocked
  }

  close(): void {
    this.#cancelLook()
  }

  /** One has ended: how quickly that goes says how many to claim. */
  ended(): void {
    this.#size.ended()
  }

  /** There is room again. `followed`: something may have waited for just this to end. */
  settled(followed: boolean): void {
    if (!this.#quiet || (followed && this.#blocked)) this.#options.wake()
  }

  /** A claim of ours that nobody works on, if there is one. */
  doubt(token: bigint): void {
    this.#unanswered.add(token)
    this.#options.wake()
  }

  get cancels(): number {
    return this.#cancels
  }

  /** Something may have been cancelled; what is in hand is looked after by who has it. */
  cancelled(): void {
    this.#cancels++
  }

  /** What is still ours of claims that were asked for when so many had been cancelled. */
  async uncancelled<C extends Claim>(claims: readonly C[], since: number): Promise<readonly C[]> {
    let [left, cancels] = [claims, since]
    while (left.length > 0 && cancels !== this.#cancels) {
      cancels = this.#cancels
      const kept = await selectHeld(this.#options.database.control, left)
      left = left.filter(({ id }) => kept.has(id))
    }
    return left
  }

  /** Nothing is looked for now: there is no lease, or nothing this process could do. */
  idle(isAble: boolean): void {
    this.#quiet = !isAble
  }

  async claim(worker: string, unsettled: number): Promise<Look> {
    await this.#unanswered.settle()
    const { database, clock, inFlight, willHear } = this.#options
    const held = inFlight.claimed + unsettled
    const now = clock.monotonic()
    const room = inFlight.claimable(this.#size.room(held, inFlight.countStuck(), now - this.#claimedAt))
    if (room <= 0) {
      if (now - this.#saidAt >= HELD_BACK_MS) await noteRunning(database.control, worker, this.#running())
      return { rows: [], restMs: this.#size.patienceMs(held) }
    }
    this.#lookAt = Number.POSITIVE_INFINITY
    // Until the answer comes, rows may be claimed that nothing here knows of.
    this.#quiet = false
    const { rows, nextMs } = await this.#ask(worker, room)
    // Of what a dead worker left, one is taken at a time: the next waits for its end.
    const isSuspect = inFlight.hasSuspect || rows.some(({ suspect }) => suspect)
    this.#block(isSuspect || (nextMs !== undefined && nextMs <= 0))
    const mayBeMore = rows.length > 0 && this.#blocked
    this.#quiet = !mayBeMore
    return { rows, restMs: mayBeMore ? 0 : this.#size.restMs(nextMs, willHear()) }
  }

  /** Claims, and knows the lanes of what it got: from here on nothing needs the database to begin it. */
  async #ask(worker: string, limit: number): Promise<{ rows: readonly ClaimedRow[]; nextMs: number | undefined }> {
    const { database, lanes, lease, inFlight, clock } = this.#options
    const token = newToken()
    const cancels = this.#cancels
    this.#claimedAt = clock.monotonic()
    const suspects = this.#wantsSuspect()
    try {
      const claimed = await claimDeliveries(database.control, {
        worker,
        token,
        names: this.names,
        limit,
        suspects,
        running: this.#running(),
        shares: JSON.stringify(inFlight.countByShare()),
        most: inFlight.mostOfShare,
        mostNamed: inFlight.mostOfName(limit),
        places: inFlight.sure,
        hanging: JSON.stringify(inFlight.hanging),
      })
      if (suspects && !claimed.rows.some(({ suspect }) => suspect)) this.#restFromSuspects()
      for (const { lane } of claimed.rows) if (!lanes.known(lane)) await lanes.get(lane)
      const rows = await this.uncancelled(claimed.rows, cancels)
      if (lease.worker === worker) return { ...claimed, rows }
    } catch (error) {
      this.#unanswered.add(token)
      throw error
    }
    this.#unanswered.add(token)
    return { rows: [], nextMs: 0 }
  }

  /** About to be said. */
  #running(): string {
    const { inFlight, clock } = this.#options
    this.#saidAt = clock.monotonic()
    return JSON.stringify(inFlight.countByDestination())
  }

  #wantsSuspect(): boolean {
    const { lease, inFlight } = this.#options
    if (!lease.hasGone || inFlight.hasSuspect) return false
    const isTime = this.#claimedAt >= this.#suspectsAt
    if (!isTime) this.lookWithin(this.#suspectsAt - this.#claimedAt)
    return isTime
  }

  /** What is left of them cannot be done here now, and no index knows of it: to look for it must not be all that is done. */
  #restFromSuspects(): void {
    const now = this.#options.clock.monotonic()
    this.#suspectsAt = now + Math.max(HELD_BACK_MS, (now - this.#claimedAt) * 20)
  }
}

/** What is held back by others is looked for this often. */
export const HELD_BACK_MS = 1_000
