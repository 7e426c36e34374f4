/** When a process may begin work: only while others take it for alive, and knowing what they asked of it. */
import { expect, onTestFinished, test } from 'vitest'
import { Lease } from '../../src/delivery/lease.ts'
import { createHealth, createRegistry, systemClock } from '../../src/runtime/index.ts'
import { connect, openDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

/** Renewed when it is nudged, and else not while a test lasts. */
async function openLease() {
  const { url } = await testDatabase({ migrated: true })
  const database = openDatabase({ database: url })
  const sql = await connect(url)
  const lock = { holds: true, possible: true, gained: 1, lacks: false }
  const lost: string[] = []
  /** Who may claim, at the end of each renewal. */
  const able: (string | undefined)[] = []
  const lease = new Lease({
    database,
    clock: systemClock,
    logger: database.logger,
    metrics: createRegistry({ clock: systemClock }),
    health: createHealth({ clock: systemClock }),
    process: 'p',
    lock: () => ({ ...lock }),
    willHear: () => true,
    onLost: () => void lost.push('lost'),
    onChange: async () => {},
    onNews: () => void able.push(lease.worker),
  })
  onTestFinished(() => lease.stop())
  await lease.start()
  await eventually(() => lease.isInformed)
  return { lease, lock, lost, able, sql }
}

test('whoever lost its lock and has it again begins nothing before its lease was renewed', async () => {
  const { lease, lock } = await openLease()
  const worker = lease.worker
  expect(worker).toBeDefined()
  lock.holds = false
  expect([lease.worker, lease.isInformed]).toEqual([undefined, false])
  Object.assign(lock, { holds: true, gained: 2 })
  expect([lease.worker, lease.isInformed]).toEqual([undefined, false])
  lease.nudge()
  await eventually(() => lease.worker === worker && lease.isInformed)
})

test('whoever was taken for gone meanwhile is a new worker, and knows what was paused', async () => {
  const { lease, lock, lost, sql } = await openLease()
  const worker = lease.worker
  lock.holds = false
  await sql.query(`update aftercommit.delivery_workers set lease_until = '-infinity'`)
  await sql.query(`insert into aftercommit.delivery_pauses (kind, name, who) values ('effect', 'mail', 'test')`)
  await sql.query('update aftercommit.delivery_state set version = version + 1')
  Object.assign(lock, { holds: true, gained: 2 })
  expect([lease.worker, lease.isInformed, lease.isPaused('effect', 'mail', '')]).toEqual([undefined, false, false])
  lease.nudge()
  await eventually(() => lease.isInformed)
  expect(lost).toEqual(['lost'])
  expect(lease.worker).not.toBe(worker)
  expect(lease.isPaused('effect', 'mail', '')).toBe(true)
})

test('a renewal that was sent before the lock was gained does not count', async () => {
  const { lease, lock, able, sql } = await openLease()
  const worker = lease.worker
  able.length = 0
  await sql.query('begin')
  await sql.query('update aftercommit.delivery_workers set started_at = started_at')
  lease.nudge()
  await eventually(async () => {
    const { rowCount } = await sql.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rowCount === 1
  })
  lock.gained = 2
  const informed = lease.untilInformed()
  await sql.query('commit')
  await informed
  expect(able).toEqual([undefined, worker])
})

test('a process that lacks its lock gives its lease back instead of renewing it, and has a new one with its lock', async () => {
  const { lease, lock, lost, sql } = await openLease()
  const worker = lease.worker!
  Object.assign(lock, { holds: false, lacks: true })
  lease.nudge()
  await eventually(async () => {
    const { rows } = await sql.query(
      'select lease_until <= clock_timestamp() as ended from aftercommit.delivery_workers where worker = $1',
      [worker],
    )
    return rows[0]?.ended === true
  })
  expect(lost).toEqual(['lost'])
  Object.assign(lock, { holds: true, gained: 2, lacks: false })
  lease.nudge()
  await eventually(() => lease.isInformed)
  expect(lease.worker).not.toBe(worker)
})
