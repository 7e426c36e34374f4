/** Operators look at deliveries, hurry, cancel and pause them. Every change records who and why. */
import { AftercommitError } from '../errors.ts'
import { type Database, recordAudit, type Transaction, withRetry } from '../postgres/index.ts'
import type { Registry } from '../runtime/index.ts'
import { countAll, countDeliveries } from './inspect-counts.ts'
import { exposeDeliveries } from './inspect-metrics.ts'
import {
  type DeliveryDetails,
  type DeliveryFilter,
  type DeliveryRecord,
  type DeliveryState,
  selectDeliveries,
  selectDelivery,
} from './inspect-statements.ts'
import {
  type DeliveryPause,
  type DestinationState,
  type OrphanedWork,
  selectDestinations,
  selectNames,
  selectOrphans,
  selectPauses,
  type WorkName,
} from './inspect-work.ts'
import { createPausing, type DeliveryAction, type Pausing } from './operate-pause.ts'
import { makeDue, raiseVersion, removeDeliveries, selectIds } from './operate-statements.ts'

/** By id, several ids, or everything that matches. */
export type DeliveryChoice = bigint | readonly bigint[] | DeliveryFilter

export interface Deliveries extends Pausing {
  /** Oldest first unless `newest`, 100 unless told. For the next page give the last id as `after`, or as `before`. */
  list(filter?: DeliveryFilter & { limit?: number; newest?: boolean }): Promise<DeliveryRecord[]>
  /** With its payload; undefined when it is done, dead, cancelled or never was. */
  show(id: bigint): Promise<DeliveryDetails | undefined>
  count(filter?: DeliveryFilter): Promise<Record<DeliveryState, number>>
  /** Due now instead of later; what is running or due already is left alone. Answers how many. */
  retry(which: DeliveryChoice, action?: DeliveryAction): Promise<number>
  /**
   * Never done, and no dead letter. A handler that is running sees its signal fire within a second, and its end changes
   * nothing. The row of an effect stays until its workflow was told; cancelling that row again removes it. Answers how many.
   */
  cancel(which: DeliveryChoice, action?: DeliveryAction): Promise<number>
  /** Names that are paused; for destinations see `destinations()`. */
  pauses(): Promise<DeliveryPause[]>
  /** Names that are known here, and how many live workers can do each. */
  names(): Promise<WorkName[]>
  /** Names with work that no live worker can do. */
  orphans(): Promise<OrphanedWork[]>
  /** Limits, circuits and pauses that all processes share. */
  destinations(): Promise<DestinationState[]>
}

export interface OperateOptions {
  readonly database: Database
  readonly metrics: Registry
  /** Tells workers, wherever they run, that something changed. */
  readonly nudge: () => Promise<void>
}

export function createDeliveries({ database, metrics, nudge }: OperateOptions): Deliveries {
  const { clock } = database
  exposeDeliveries(metrics, database.control, clock)

  /** The change and its record are one transaction; one that lost a deadlock to a worker is made again. */
  function change<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return withRetry(() => database.transaction(work, { isolation: 'read committed' }), { clock })
  }

  async function cancel(tx: Transaction, filter: DeliveryFilter, who: string, reason: string | undefined) {
    let left = await selectIds(tx, filter)
    const ids: bigint[] = []
    const names = new Set<string>()
    let claimed = false
    while (left.length > 0) {
      const removed = await removeDeliveries(tx, left, { who, reason: reason ?? 'its delivery was cancelled' })
      ids.push(...removed.ids)
      for (const name of removed.names) names.add(name)
      claimed ||= removed.claimed
      const done = new Set(removed.ids)
      const missed = left.filter((id) => !done.has(id))
      left = missed.length === 0 ? [] : await selectIds(tx, { ids: missed })
    }
    if (ids.length === 0) return 0
    if (claimed) await raiseVersion(tx)
    await recordMany(tx, 'delivery.cancel', { ids, names: [...names] }, who, reason)
    return ids.length
  }

  return {
    list: async ({ limit = 100, newest = false, ...filter } = {}) =>
      selectDeliveries(database, filter, { limit: checkLimit(limit), newest }),
    show: (id) => selectDelivery(database, id),
    async count(filter) {
      const { states } = await (filter === undefined ? countAll(database) : countDeliveries(database, filter))
      return { ...states }
    },
    async retry(which, { who = 'unknown', reason } = {}) {
      const count = await change(async (tx) => {
        const changed = await makeDue(tx, toFilter(which))
        if (changed.ids.length > 0) await recordMany(tx, 'delivery.retry', changed, who, reason)
        return changed.ids.length
      })
      if (count > 0) await nudge()
      return count
    },
    async cancel(which, { who = 'unknown', reason } = {}) {
      const count = await change((tx) => cancel(tx, toFilter(which), who, reason))
      // Others may have waited behind them.
      if (count > 0) await nudge()
      return count
    },
    ...createPausing({ database, change, nudge }),
    pauses: () => selectPauses(database),
    names: () => selectNames(database),
    orphans: () => selectOrphans(database),
    destinations: () => selectDestinations(database),
  }
}

async function recordMany(
  tx: Transaction,
  what: string,
  { ids, names }: { ids: readonly bigint[]; names: readonly string[] },
  who: string,
  reason: string | undefined,
): Promise<void> {
  await recordAudit(tx, {
    who,
    what,
    target: names.join(', ').slice(0, 500),
    after: { count: ids.length, first: ids[0] },
    ...(reason === undefined ? {} : { reason }),
  })
}

function toFilter(which: DeliveryChoice): DeliveryFilter {
  if (typeof which === 'bigint') return { ids: [which] }
  return Array.isArray(which) ? { ids: which } : (which as DeliveryFilter)
}

function checkLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= 1_000) return limit
  throw new AftercommitError(
    'BAD_OPTION',
    'limit must be a whole number from 1 to 1000. Use `after` for the next page.',
  )
}
