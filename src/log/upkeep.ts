/**
 * Upkeep of the log: room ahead of the head, what retention lets go, indexes on closed partitions. Nothing here may make
 * an append wait: locks that conflict with it are asked for with a timeout of 50 ms and tried again later; the rest is
 * done concurrently. One process at a time, by a session lock.
 */
import type { Database, Session } from '../postgres/index.ts'
import { SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import type { Logger } from '../runtime/index.ts'
import {
  detachPartition,
  dropIndex,
  dropPartition,
  forgetProcesses,
  isOutOfRetention,
  keepFrom,
  listDetached,
  listPartitions,
  missingIndexes,
  type Partition,
  readUpkeepState,
  splitPartitions,
} from './upkeep-statements.ts'

export interface UpkeepOptions {
  readonly database: Database
  readonly logger: Logger
  /** The lowest position somebody still needs; nothing at or above it is dropped. */
  readonly neededFrom: () => Promise<bigint>
}

export interface UpkeepReport {
  readonly added: string[]
  readonly dropped: string[]
  readonly indexed: string[]
  /** What could not be done now, and why. */
  readonly postponed: string[]
}

export async function runUpkeep({ database, logger, neededFrom }: UpkeepOptions): Promise<UpkeepReport> {
  const report: UpkeepReport = { added: [], dropped: [], indexed: [], postponed: [] }
  report.added.push(...(await trySplit(database, report)))
  await forgetProcesses(database.control)
  const state = await readUpkeepState(database.control)
  if (!state.mayAlter) {
    if (state.retention) report.postponed.push('retention: only the owner of the schema may drop partitions')
    return report
  }
  const session = await database.openSession('migrate', { queryTimeoutMs: 0 })
  try {
    const lockKey = database.schemaName.lockKey('upkeep')
    if (!(await tryLock(session, lockKey))) {
      // Another process of ours is at it. A role that is not allowed to do upkeep only keeps others from it.
      const stranger = await findLockStranger(session, lockKey)
      if (stranger === undefined) return report
      const why = `upkeep: session ${stranger.pid} of role ${stranger.role}, which does no upkeep, holds its lock; end that session`
      report.postponed.push(why)
      logger.error(
        { pid: stranger.pid, role: stranger.role },
        'upkeep of the log is kept from its work by a lock that a role without that right holds',
      )
      return report
    }
    if (state.retention) await dropOld(session, await neededFrom(), state.frontier, report)
    await indexClosed(session, state.frontier, report)
  } finally {
    session.destroy()
  }
  for (const [what, names] of Object.entries(report)) if (names.length > 0) logger.info({ [what]: names }, 'log upkeep')
  return report
}

async function trySplit(database: Database, report: UpkeepReport): Promise<string[]> {
  try {
    return await splitPartitions(database.control)
  } catch (error) {
    const state = sqlstateOf(error)
    if (state !== SQLSTATE.lockNotAvailable && state !== 'AC009') throw error
    report.postponed.push(
      state === 'AC009'
        ? 'split: the open partition already holds events; it stays one large partition'
        : 'split: an appender is open; it is tried again',
    )
    return []
  }
}

async function dropOld(session: Session, neededFrom: bigint, frontier: bigint, report: UpkeepReport): Promise<void> {
  for (const name of await listDetached(session)) {
    await dropPartition(session, name)
    report.dropped.push(name)
  }
  for (const partition of droppable(await listPartitions(session), neededFrom, frontier)) {
    if (!partition.detaching && !(await isOutOfRetention(session, partition))) return
    await keepFrom(session, partition.to!)
    await detachPartition(session, partition.name, partition.detaching)
    await dropPartition(session, partition.name)
    report.dropped.push(partition.name)
  }
}

/** Oldest first, whole, final, and no longer needed by anybody. */
export function droppable(partitions: readonly Partition[], neededFrom: bigint, frontier: bigint): Partition[] {
  const limit = neededFrom < frontier ? neededFrom : frontier
  return partitions.filter(({ to }) => to !== null && to <= limit)
}

async function indexClosed(session: Session, frontier: bigint, report: UpkeepReport): Promise<void> {
  for (const partition of await listPartitions(session)) {
    if (partition.to === null || partition.to > frontier || partition.detaching) continue
    for (const index of await missingIndexes(session, partition.name)) {
      if (index.broken) await dropIndex(session, index.name)
      await session.query(index.sql)
      report.indexed.push(index.name)
    }
  }
}

/** A session that holds the lock although its role has no rights on the schema of ours that upkeep needs. */
async function findLockStranger(session: Session, key: string): Promise<{ pid: number; role: string } | undefined> {
  const { rows } = await session.query<{ pid: number; role: string }>(
    `select a.pid, a.usename::text as role
       from pg_catalog.pg_locks l
       join pg_catalog.pg_stat_activity a on a.pid = l.pid
       join pg_catalog.pg_class c on c.oid = pg_catalog.to_regclass($2::text)
      where l.locktype = 'advisory' and l.granted
        and l.database = a.datid and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
        and ((l.classid::bigint << 32) | l.objid::bigint) = pg_catalog.hashtextextended($1::text, 0)
        and not pg_catalog.pg_has_role(a.usesysid, c.relowner, 'usage')`,
    [key, `${session.schema}.events`],
  )
  return rows[0]
}

/** Ends with the session. */
async function tryLock(session: Session, key: string): Promise<boolean> {
  const { rows } = await session.query<{ locked: boolean }>(
    'select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1::text, 0)) as locked',
    [key],
  )
  return rows[0]!.locked
}
