/** One claimed row while this process works on it. */
import { AftercommitError } from '../errors.ts'
import { parseJson } from '../events/index.ts'
import type { Transaction } from '../postgres/index.ts'
import { Attempt } from './attempt.ts'
import type { Delivery, RunContext, Work } from './delivery.ts'
import { shareOf } from './in-flight.ts'
import type { Lane } from './lanes.ts'
import { type Claim, type ClaimedRow, completeDeliveries } from './statements.ts'

export class Run extends Attempt implements RunContext {
  readonly claim: Claim
  readonly row: ClaimedRow
  readonly work: Work
  readonly delivery: Delivery
  /** Whose share of the places it takes. */
  readonly share: string
  /** The work has said how it went; what is left to do is ours. */
  ended = false
  /** Ended in a transaction of the work's own. */
  completed = false
  /** The error of a statement of ours, after the work itself had succeeded. */
  fault: unknown
  /** Another worker owns the row by now: what this one does changes nothing, and nothing is written about it. */
  lost = false

  constructor(row: ClaimedRow, lane: Lane, work: Work) {
    super()
    this.claim = row
    this.row = row
    this.share = shareOf(lane.destination, lane.name)
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

  protected call(): unknown {
    return this.work.run(this.delivery, this)
  }

  onFault(error: unknown): void {
    this.fault = error
  }

  /** The claim is gone: the work is told so. */
  lose(reason: unknown): void {
    this.lost = true
    this.abort(reason)
  }
}
