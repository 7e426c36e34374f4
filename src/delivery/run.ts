/** One claimed delivery while this process works on it. */
import { AftercommitError } from '../errors.ts'
import { parseJson } from '../events/index.ts'
import type { Transaction } from '../postgres/index.ts'
import { type Clock, formatDuration, LazySignal, withDeadline } from '../runtime/index.ts'
import type { Delivery, RunContext, Work } from './delivery.ts'
import type { Lane } from './lanes.ts'
import { type Claim, type ClaimedRow, completeDeliveries } from './statements.ts'

/** The signal is made when somebody looks at it: most work never does. */
export class Run extends LazySignal implements RunContext {
  readonly claim: Claim
  readonly row: ClaimedRow
  readonly work: Work
  readonly delivery: Delivery
  startedMs = 0
  /** The work has said how it went; what is left to do is ours. */
  ended = false
  /** Ended in a transaction of the work's own. */
  completed = false
  /** The error of a statement of ours, after the work itself had succeeded. */
  fault: unknown
  /** Somebody else's by now: what it does changes nothing, and nothing is written about it. */
  lost = false

  constructor(row: ClaimedRow, lane: Lane, work: Work) {
    super()
    this.claim = row
    this.row = row
    this.delivery = {
      id: row.id,
      kind: lane.kind,
      name: lane.name,
      owner: row.owner,
      key: row.key,
      destination: lane.destination,
      tenant: lane.tenant,
      payload: parseJson(row.payload, { maxDepth: 1_010 }),
      redriven: row.letter !== null,
      fresh: row.fresh ?? false,
      attempt: row.attempts,
      createdAt: new Date(row.createdMs),
    }
    this.work = work.of?.(this.delivery) ?? work
  }

  async complete(tx: Transaction): Promise<void> {
    const settled = await completeDeliveries(tx, [this.claim])
    if (!settled.has(this.claim.id)) {
      throw new AftercommitError(
        'CLAIM_LOST',
        `The claim on delivery ${this.claim.id} of "${this.work.name}" was lost, so its transaction was not committed.`,
      )
    }
    this.completed = true
  }

  settled(): void {
    this.completed = true
  }

  onFault(error: unknown): void {
    this.fault = error
  }
}

/** Work that is still running after its time is given up; what it does from then on changes nothing here. */
export function withinTime(promise: PromiseLike<unknown>, run: Run, clock: Clock): Promise<unknown> {
  return withDeadline(promise, run.work.timeoutMs, clock, () => {
    const error = timedOut(run.work)
    run.abort(error)
    return error
  })
}

export function timedOut(work: Work): Error {
  const { name, timeoutMs } = work
  if (work.toTimeout) return work.toTimeout()
  return new AftercommitError(
    'TIMED_OUT',
    `"${name}" was still running after ${formatDuration(timeoutMs)}. Its signal has fired; make it end then, or raise \`timeout\`.`,
  )
}
