/** Which events a subscription has processed already, for handlers that must not act twice. */
import { AftercommitError } from '../errors.ts'
import { type CallerTransaction, type Database, recordAudit, toTransaction } from '../postgres/index.ts'
import { type Duration, toMs } from '../runtime/index.ts'
import type { OperatorAction } from './handle.ts'
import {
  claimKey,
  deleteKeysBefore,
  deletePassedKeys,
  forgetKeys,
  hasKey,
  markCheckpoints,
} from './processed-statements.ts'

export interface Processed {
  has(subscription: string, eventId: string): Promise<boolean>
  /**
   * Claims an event for a subscription: true for the first, false for everybody after. With `tx`, anybody's transaction,
   * the claim is kept only if that commits, and a second claim waits until it has ended.
   */
  mark(
    subscription: string,
    event: string | { readonly id: string; readonly position?: bigint },
    options?: { tx?: CallerTransaction | undefined },
  ): Promise<boolean>
  /**
   * Deletes keys written before a time and answers how many. Keys that are still needed stay: of events above the
   * checkpoint, of dead letters and of events parked behind one.
   */
  deleteBefore(time: Date): Promise<number>
  /**
   * Replay: forgets the keys of events above a position (all of them unless told), so that a subscription which is then
   * sought back handles those events again. Answers how many.
   */
  forget(subscription: string, options?: { from?: bigint } & OperatorAction): Promise<number>
}

/** How long a key is kept after the checkpoint has passed its event. */
const RETENTION = '7d'
const AT_ONCE = 5_000

export function createProcessed(database: Database): Processed {
  return {
    has: (subscription, eventId) => hasKey(database, subscription, eventId),
    async mark(subscription, event, { tx } = {}) {
      const { id, position = null } = typeof event === 'string' ? { id: event } : event
      const db = tx === undefined ? database : toTransaction(tx, database.schema, 'leave `tx` out to commit at once')
      return claimKey(db, subscription, id, position)
    },
    async deleteBefore(time) {
      if (!(time instanceof Date) || Number.isNaN(time.getTime())) {
        throw new AftercommitError('BAD_OPTION', 'processed.deleteBefore needs a valid Date, so no key was deleted.')
      }
      return inTurns(() => deleteKeysBefore(database, time, AT_ONCE))
    },
    forget: (subscription, { from = 0n, who = 'unknown', reason } = {}) =>
      database.transaction(async (tx) => {
        const count = await forgetKeys(tx, subscription, from)
        await recordAudit(tx, {
          who,
          what: 'processed.forget',
          target: subscription,
          after: { from, count },
          ...(reason === undefined ? {} : { reason }),
        })
        return count
      }),
  }
}

/** Upkeep: deletes the keys of events that every checkpoint passed long enough ago. Safe to run anywhere, at any time. */
export async function pruneProcessed(
  database: Database,
  { retention = RETENTION }: { retention?: Duration } = {},
): Promise<number> {
  const seconds = toMs(retention, 'retention') / 1_000
  await markCheckpoints(database.control, seconds)
  return inTurns(() => deletePassedKeys(database.control, seconds, AT_ONCE))
}

/** Many small statements rather than one that holds its locks for long. */
async function inTurns(deleteSome: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await deleteSome()
    total += count
    if (count < AT_ONCE) return total
  }
}
