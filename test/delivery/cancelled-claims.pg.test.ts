/** Work that is cancelled while the answer to its claim is under way: whoever cancels relies on it from then on. */
import { expect, test } from 'vitest'
import { createLanes, type Lanes } from '../../src/delivery/lanes.ts'
import { enlistByHand } from './support/by-hand.ts'
import { openClaimer } from './support/open-claimer.ts'
import { mails, openDelivering } from './support/open-delivering.ts'

async function opened() {
  const { worker, sql } = await openDelivering()
  const { database, add } = await worker()
  await enlistByHand(sql)
  return { database, sql, add: (n: number) => add(database, mails(n)) }
}

test('it is not among what a claim gives, and the rest is', async () => {
  const { database, sql, add } = await opened()
  const lanes = createLanes(database.control)
  let isCancelling = true
  // Asked for the first row of a lane, which is after the claim was committed.
  const interrupted: Lanes = {
    ...lanes,
    async get(lane) {
      if (isCancelling) {
        isCancelling = false
        await sql.query(`delete from aftercommit.deliveries where payload @> '{"n": 2}'`)
        claimer.cancelled()
      }
      return lanes.get(lane)
    },
  }
  const { claimer } = openClaimer(database, { lanes: interrupted })
  await add(3)
  const { rows } = await claimer.claim('by hand', 0)
  expect(rows.map(({ payload }) => JSON.parse(payload).n).sort()).toEqual([1, 3])
})

test('nothing is asked about claims that nobody can have cancelled', async () => {
  const { database, sql, add } = await opened()
  const { claimer } = openClaimer(database)
  await add(2)
  claimer.cancelled()
  const since = claimer.cancels
  const { rows } = await claimer.claim('by hand', 0)
  await sql.query('delete from aftercommit.deliveries')
  expect(await claimer.uncancelled(rows, since)).toHaveLength(2)
  claimer.cancelled()
  expect(await claimer.uncancelled(rows, since)).toEqual([])
})
