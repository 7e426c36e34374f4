/** A worker is not quiet while a claim of it is under way: `drain()` relies on it. */
import { expect, test } from 'vitest'
import { createDatabase, type Database } from '../../src/postgres/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('a worker whose claim was answered by the server and not yet read is not quiet', async () => {
  const { url, sql, worker } = await openDelivering()
  const { passed, open } = gate()
  let isHeld = false
  const database = createDatabase({ database: url, connectTimeoutMs: 5_000 })
  const query: Database['query'] = async (text: string, ...rest: never[]) => {
    const result = await database.control.query(text, ...rest)
    const rows = result.rows as { id: string | null }[]
    if (isHeld && text.includes('claim_deliveries(') && rows.some(({ id }) => id !== null)) await passed
    return result as never
  }
  const one = await worker({ database: { ...database, control: { ...database.control, query } } })
  const done: bigint[] = []
  one.register(work(({ id }) => void done.push(id)))
  await eventually(() => one.quiet)
  isHeld = true
  // Another process adds it, so this one finds it by a look of its own.
  const other = await worker()
  await other.add(other.database, mails(1))
  await eventually(
    async () => (await sql.query('select from aftercommit.deliveries where token is not null')).rowCount === 1,
  )
  expect(one.quiet).toBe(false)
  open()
  await eventually(() => done.length === 1 && one.quiet)
})
