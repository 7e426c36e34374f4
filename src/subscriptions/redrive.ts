/**
 * Letters that somebody marked. Redriven or given up, what waits behind one follows in order; a key is free once nothing
 * of it waits and no letter of it is dead. Only the owner does this, under its term.
 */
import { freeKey, resolveLetter, selectMarked, selectParked } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { type Lanes, toItem } from './lanes.ts'
import type { Held } from './statements.ts'

const AT_ONCE = 50

/** Puts marked letters, then what waits behind them, into their lanes. True when there was something to do. */
export async function redriveMarked(
  db: Queryable,
  held: Held,
  parkedKeys: Set<string>,
  lanes: Lanes,
): Promise<boolean> {
  const marked = await selectMarked(db, held.id, AT_ONCE)
  let found = false
  const keys = new Set<string>()
  for (const { letter, key, event, discarded, parks } of marked) {
    if (lanes.isHeld(key) && !keys.has(key)) continue
    if (!discarded) {
      lanes.add(toItem(event, key, 'letter', letter))
      found = true
    } else if (!(await resolveLetter(db, held, letter))) return found
    if (parks) keys.add(key)
  }
  for (const key of keys) found = (await followUp(db, held, key, parkedKeys, lanes)) || found
  return found
}

/** Behind a letter that is redriven now comes the next page; behind one that is over, the page or the free key. */
async function followUp(
  db: Queryable,
  held: Held,
  key: string,
  parkedKeys: Set<string>,
  lanes: Lanes,
): Promise<boolean> {
  if (lanes.isHeld(key)) return false
  const waiting = await selectParked(db, held.id, key, AT_ONCE)
  for (const event of waiting) lanes.add(toItem(event, key, 'parked'))
  if (waiting.length > 0) return true
  if (await freeKey(db, held, key)) parkedKeys.delete(key)
  return false
}
