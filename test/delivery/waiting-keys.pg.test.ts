/** However many keys wait in the database, an event of a key costs no more than a look at that key. */
import { expect, test } from 'vitest'
import type { Reaction } from '../../src/delivery/index.ts'
import { createDatabase, type Database } from '../../src/postgres/index.ts'
import { eventually } from '../support/eventually.ts'
import { openDelivering, work } from './support/open-delivering.ts'
import { never, reaction, savedReactions } from './support/reacting.ts'

const WAITING = 25_000

/** Says how many rows its answers had since it was last asked. */
function countingDatabase(url: string): Database & { largest(): number } {
  const database = createDatabase({ database: url, connectTimeoutMs: 5_000 })
  let most = 0
  const query: Database['query'] = async (text: string, ...rest: never[]) => {
    const result = await database.control.query(text, ...rest)
    most = Math.max(most, result.rows.length)
    return result as never
  }
  const largest = () => {
    const had = most
    most = 0
    return had
  }
  return { ...database, control: { ...database.control, query }, largest }
}

const TITLE =
  'a key waits behind its row or its dead letter and no other does, at the cost of a look at it: PostgreSQL %i'

test.each([18, 14] as const)(TITLE, async (major) => {
  const { url, sql, worker } = await openDelivering({ major })
  await sql.query(
    `with lane as (select aftercommit.delivery_lane('effect', 'mail', '', '', 0::smallint) as lane),
          added as (
            select aftercommit.add_deliveries(jsonb_agg(jsonb_build_object(
                     'lane', lane, 'owner', 'shop', 'key', 'row-' || n, 'ordered', true, 'payload', '{}'::jsonb)))
              from lane, generate_series(1, $1::int) n
             group by lane)
     insert into aftercommit.letters (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at,
                                      last_attempt_at, parks, delivery)
     select 'effect', 'shop', 'letter-' || n, n, n, '{}', '{}', 1, now(), now(), true, jsonb_build_object('lane', lane)
       from lane, generate_series(1, $1::int) n, (select count(*) from added) a`,
    [WAITING],
  )
  await sql.query('analyze aftercommit.deliveries, aftercommit.letters')
  const database = countingDatabase(url)
  const one = await worker({ database })
  one.register(work(() => {}, { name: 'warm-up' }))
  const reactions = await savedReactions(one, sql)
  await reactions.begin()
  expect(database.largest()).toBeLessThan(WAITING)

  const done: string[] = []
  const ask = async (key: string) => {
    const first: Reaction['run'] = async () => void done.push(key)
    await reactions.react([reaction(() => {}, first, { key })], never)
  }
  const keys = ['row-1', 'row-25000', 'letter-1', 'letter-25000', 'free', 'row-0']
  await Promise.all(keys.map(ask))
  expect(done.sort()).toEqual(['free', 'row-0'])
  const kept = `select key from aftercommit.deliveries where payload <> '{}' order by key`
  expect((await sql.query(kept)).rows.map(({ key }) => key)).toEqual(['letter-1', 'letter-25000', 'row-1', 'row-25000'])

  // Somebody works them off: what comes then need not wait.
  await sql.query(`delete from aftercommit.deliveries where key in ('row-1', 'letter-1')`)
  await sql.query(`update aftercommit.letters set status = 'resolved' where key = 'letter-1'`)
  done.length = 0
  await eventually(async () => {
    await sql.query(`delete from aftercommit.deliveries where key in ('row-1', 'letter-1')`)
    await Promise.all(['row-1', 'letter-1', 'letter-25000'].map(ask))
    return done.includes('row-1') && done.includes('letter-1')
  })
  expect(done).not.toContain('letter-25000')
  expect(database.largest()).toBeLessThan(100)
})
