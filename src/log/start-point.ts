/** Where a reader begins. */
import { AftercommitError } from '../errors.ts'
import type { Queryable } from '../postgres/index.ts'
import { selectBefore, selectFirstFrom, selectKeptFrom } from './statements.ts'

/** The oldest event kept, what is final now, above a position, or from a time on. */
export type StartPoint = 'start' | 'head' | bigint | Date

export function isStartPoint(from: unknown): from is StartPoint {
  if (from instanceof Date) return Number.isFinite(from.getTime())
  return from === 'start' || from === 'head' || (typeof from === 'bigint' && from >= 0n)
}

export interface Start {
  readonly after: bigint
  /** Events recorded before this time are passed over. */
  readonly since?: Date
}

export async function findStart(db: Queryable, from: StartPoint, head: bigint): Promise<Start> {
  if (from === 'start') return { after: 0n }
  if (from === 'head') return { after: head }
  if (typeof from === 'bigint' && from >= 0n) return { after: await stillKept(db, from) }
  if (from instanceof Date && Number.isFinite(from.getTime()))
    return { after: await findTime(db, from, head), since: from }
  throw new AftercommitError(
    'BAD_OPTION',
    "`from` must be 'start', 'head', a position (bigint, 0 or more) or a valid Date.",
  )
}

/** Nothing is passed over silently: a position below what retention has kept is refused. */
async function stillKept(db: Queryable, position: bigint): Promise<bigint> {
  const kept = await selectKeptFrom(db)
  if (position + 1n >= kept) return position
  throw new AftercommitError(
    'HISTORY_LOST',
    `Events ${position + 1n} to ${kept - 1n} are no longer kept, so reading did not begin above ${position}. ` +
      "Begin at 'start' to go on with the oldest event there is.",
  )
}

/** The position after which a checkpoint begins. A time is exact but for events recorded a moment out of order. */
export async function findPosition(db: Queryable, from: StartPoint, head: bigint): Promise<bigint> {
  const start = await findStart(db, from, head)
  const kept = (await selectKeptFrom(db)) - 1n
  const after = start.since === undefined ? start.after : await selectBefore(db, start.after, start.since, head)
  return after < kept ? kept : after
}

/**
 * Positions follow the recorded time but for the moments between taking a number and writing the row, so the time is
 * found by bisection, a minute early; readers pass over what was recorded before. No index over times is needed.
 */
const SLACK_MS = 60_000

async function findTime(db: Queryable, time: Date, head: bigint): Promise<bigint> {
  const wanted = time.getTime() - SLACK_MS
  let low = 0n
  let high = head + 1n
  while (low < high) {
    const middle = (low + high) / 2n
    const found = await selectFirstFrom(db, middle)
    if (found === undefined || found.recordedAt >= wanted) high = middle
    else low = found.position + 1n
  }
  return low > 0n ? low - 1n : 0n
}
