/**
 * Reads a stretch of the log until enough events passed the filter, window by window: no statement takes longer the larger
 * the log is, however few events pass.
 */
import type { Queryable } from '../postgres/index.ts'
import type { EventRow } from './event-row.ts'
import { isFull } from './page-size.ts'
import { afterFailure, afterRead, FIRST_WINDOW } from './read-window.ts'
import { selectWindow, type WindowFilter } from './window-statements.ts'

/** The first events above `after` and up to `upTo`, or the last ones with `newestFirst`. */
export async function readThrough(db: Queryable, wanted: WindowFilter): Promise<EventRow[]> {
  const rows: EventRow[] = []
  let { after, upTo } = wanted
  let window = FIRST_WINDOW
  while (after < upTo && rows.length < wanted.limit) {
    const part = wanted.newestFirst
      ? { after: greatest(after, upTo - window.positions), upTo }
      : { after, upTo: least(upTo, after + window.positions) }
    const limit = wanted.limit - rows.length
    let found: EventRow[]
    try {
      found = await selectWindow(db, { ...wanted, ...part, limit })
      rows.push(...found)
      window = afterRead(window, { covered: part.upTo - part.after, found: found.length, limit })
    } catch (error) {
      const narrower = afterFailure(window, error)
      if (narrower === undefined) throw error
      window = narrower
      continue
    }
    // A page that was cut by its weight ends before its window does.
    const last = isFull(found, limit) ? BigInt(found.at(-1)!.pos) : undefined
    if (wanted.newestFirst) upTo = last === undefined ? part.after : last - 1n
    else after = last ?? part.upTo
  }
  return rows
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function greatest(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
