/** A backlog of first attempts belongs to one process; what it cannot begin next becomes rows for the others. */
import { expect, it } from 'vitest'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { beginLeaseByHand } from './support/by-hand.ts'
import { openDelivering, work } from './support/open-delivering.ts'
import { never, type reaction as Reaction, reaction, savedReactions } from './support/reacting.ts'

const CONCURRENCY = 4

/** A process with calls that hang until `open` is called, and how many of them have begun. */
async function openBusy() {
  const { sql, worker } = await openDelivering()
  const one = await worker({ concurrency: CONCURRENCY })
  const { passed, open } = gate()
  let [begun, rowsRun] = [0, 0]
  one.register(
    work(() => {
      rowsRun++
      return passed
    }),
  )
  const reactions = await savedReactions(one, sql)
  await reactions.begin()
  const ask = (words: Parameters<typeof Reaction>[2] = {}) => {
    const first = () => {
      begun++
      return passed
    }
    return reactions.react([reaction(() => {}, first, words)], never)
  }
  const rows = async (where = 'true') => {
    const found = await sql.query(`select count(*)::integer as count from aftercommit.deliveries where ${where}`)
    return found.rows[0].count as number
  }
  return { sql, worker, one, ask, open, rows, begun: () => begun, rowsRun: () => rowsRun }
}

it('calls that wait behind a full process are run by another one, each of them once', async () => {
  const { worker, one, ask, open, begun, rowsRun } = await openBusy()
  const asked = Array.from({ length: 40 }, () => ask())
  let elsewhere = 0
  const two = await worker({ concurrency: CONCURRENCY })
  two.register(work(() => void elsewhere++))
  one.nudged()
  await eventually(() => elsewhere + rowsRun() >= 32)
  open()
  await Promise.all(asked)
  await eventually(() => begun() + elsewhere + rowsRun() === 40)
})

it('as many calls become rows as another live worker has places, and ordered calls stay where their order is known', async () => {
  const { sql, one, ask, open, rows } = await openBusy()
  await beginLeaseByHand(sql, 'busy')
  await sql.query(
    `insert into aftercommit.delivery_workers (worker, process, names)
     values ('busy', 'busy', '[{"kind": "effect", "name": "mail"}]')`,
  )
  one.nudged()
  const ordered = Array.from({ length: 4 }, (_, n) => ask({ key: `k${n}` }))
  const asked = Array.from({ length: 40 }, () => ask())
  await eventually(async () => (await rows('token is null')) === CONCURRENCY)
  open()
  await Promise.all([...ordered, ...asked])
  expect(await rows('ordered')).toBe(0)
})
