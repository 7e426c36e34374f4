/** Whoever keeps rows from being removed is seen, before it hurts. */
import { expect, it } from 'vitest'
import { selectVacuum, vacuumFinding } from '../../src/delivery/inspect-vacuum.ts'
import { connect, openTestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

it.each([18, 14] as const)('an old snapshot and the rows it keeps are seen on Postgres %i', async (major) => {
  const { db, url } = await openTestDatabase({ major, migrated: true })
  const analyst = await connect(url)
  await analyst.query(`set application_name = 'analytics'`)
  const { rows } = await analyst.query('select pg_backend_pid() as pid')
  await analyst.query('begin isolation level repeatable read')
  await analyst.query('select count(*) from aftercommit.deliveries')
  const churn = await connect(url)
  await churn.query(`select aftercommit.delivery_lane('action', 'mail', '', '', 0::smallint)`)
  await churn.query(`insert into aftercommit.deliveries (segment, id, lane, owner, payload)
    select 1, n, (select lane from aftercommit.delivery_lanes), 'mail', '{}' from generate_series(1, 200) n`)
  await churn.query('delete from aftercommit.deliveries')
  // What a vacuum found is counted by the server a moment later, and again by the next one.
  const look = async () => {
    await churn.query('vacuum aftercommit.deliveries_1')
    return selectVacuum(db)
  }
  const state = await eventually(async () => {
    const found = await look()
    return found.deadTuples >= 200 && found
  })
  expect(state.oldest).toMatchObject({ pid: rows[0].pid, application: 'analytics' })
  expect(vacuumFinding(state).level).toBe('ok')
  await analyst.query('rollback')
  await eventually(async () => (await look()).deadTuples === 0)
})

it('a transaction that stays for long is named, with what ends it', () => {
  const oldest = { pid: 4711, application: 'analytics', ageMs: 30 * 60_000 }
  expect(vacuumFinding({ deadTuples: 12_345, oldest })).toMatchObject({
    level: 'warning',
    check: 'snapshots',
    message: expect.stringMatching(/^A transaction of pid 4711 \(analytics\) has held a snapshot for 30 min.*12345 of/),
    fix: 'Let it end, or end it: select pg_terminate_backend(4711)',
  })
})
