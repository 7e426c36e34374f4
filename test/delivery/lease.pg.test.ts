/** When a worker may begin: only under the lease of its process, and knowing what operators asked of it. */
import { expect, onTestFinished, test } from 'vitest'
import { Lease } from '../../src/delivery/lease.ts'
import { createHealth, createRegistry, systemClock } from '../../src/runtime/index.ts'
import { openLeaseKeeper } from '../processes/support/open-lease-keeper.ts'
import { connect, openDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

/** Asks for news when it is nudged, and else not while a test lasts. */
async function openLease() {
  const { url } = await testDatabase({ migrated: true })
  const database = openDatabase({ database: url })
  const sql = await connect(url)
  const { keeper, lock, process } = await openLeaseKeeper(url)
  const lost: string[] = []
  const lease = new Lease({
    database,
    clock: systemClock,
    logger: database.logger,
    metrics: createRegistry({ clock: systemClock }),
    health: createHealth({ clock: systemClock }),
    process,
    processLease: keeper,
    willHear: () => true,
    onLost: () => void lost.push('lost'),
    onChange: async () => {},
    onNews: () => {},
  })
  onTestFinished(() => lease.stop())
  await lease.start()
  await eventually(() => lease.isInformed)
  return { lease, keeper, lock, lost, sql }
}

test('a worker carries the lease of its process as its name', async () => {
  const { lease, keeper } = await openLease()
  expect(lease.worker).toBe(keeper.current)
})

test('a worker whose process lost its lock begins nothing before the lease was renewed', async () => {
  const { lease, keeper, lock, lost } = await openLease()
  const { worker } = lease
  lock.holds = false
  expect([lease.worker, lease.isInformed]).toEqual([undefined, false])
  Object.assign(lock, { holds: true, gained: 2 })
  keeper.look()
  await eventually(() => lease.worker === worker && lease.isInformed)
  expect(lost).toEqual([])
})

test('a worker whose process was taken for gone is a new worker, and knows what was paused', async () => {
  const { lease, keeper, lock, lost, sql } = await openLease()
  const { worker } = lease
  lock.holds = false
  await sql.query(`update aftercommit.processes set lease_until = '-infinity'`)
  await sql.query(`insert into aftercommit.delivery_pauses (kind, name, who) values ('effect', 'mail', 'test')`)
  await sql.query('update aftercommit.delivery_state set version = version + 1')
  Object.assign(lock, { holds: true, gained: 2 })
  expect([lease.worker, lease.isInformed, lease.isPaused('effect', 'mail', '')]).toEqual([undefined, false, false])
  keeper.look()
  await eventually(() => lease.isInformed)
  expect(lost).toEqual(['lost'])
  expect(lease.worker).not.toBe(worker)
  expect(lease.isPaused('effect', 'mail', '')).toBe(true)
})

test('a worker whose row was removed by hand is listed again', async () => {
  const { lease, sql } = await openLease()
  await sql.query('delete from aftercommit.delivery_workers')
  lease.nudge()
  await eventually(async () => {
    lease.nudge()
    return (
      (await sql.query('select from aftercommit.delivery_workers where worker = $1', [lease.worker])).rowCount === 1
    )
  })
})
