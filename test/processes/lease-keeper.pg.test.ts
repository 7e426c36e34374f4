/** When a process may work: only under a lease that the database knows, and while others can see that it lives. */
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/index.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type OpenLeaseKeeper, openLeaseKeeper } from './support/open-lease-keeper.ts'

async function open(options: Parameters<typeof openLeaseKeeper>[1] = {}) {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  return { url, sql, ...(await openLeaseKeeper(url, options)) }
}

/** Holds the session lock of a process, as its LISTEN connection does. */
async function holdLock(url: string, { process, lock, keeper }: OpenLeaseKeeper): Promise<pg.Client> {
  const holder = await connect(url)
  const key = `test:${process}`
  await holder.query('select pg_advisory_lock(hashtextextended($1, 0))', [key])
  await holder.query('update aftercommit.processes set lock_key = $2 where process = $1', [process, key])
  Object.assign(lock, { key, gained: lock.gained + 1 })
  keeper.look()
  await eventually(() => keeper.current !== undefined)
  return holder
}

const endAll = `update aftercommit.processes set lease_until = '-infinity'`

describe('a lease that the database has ended', () => {
  test('is lost with all that names it, and the next one has another name', async () => {
    const { keeper, told, sql } = await open()
    const lease = keeper.current
    await sql.query(endAll)
    keeper.look()
    await eventually(() => told.includes('lost') && keeper.current !== undefined)
    expect(keeper.current).not.toBe(lease)
    expect(told).toEqual(['held', 'lost', 'held'])
  })

  test('is lost as well when the row of the process was removed by hand', async () => {
    const { keeper, told, sql } = await open()
    await sql.query('delete from aftercommit.processes')
    keeper.look()
    await eventually(() => told.length === 3 && keeper.current !== undefined)
    expect((await sql.query('select lease from aftercommit.processes')).rows).toEqual([{ lease: keeper.current }])
  })
})

describe('the lock of a process', () => {
  test('lets it begin nothing while it is lost, nor before the lease was renewed under the new one', async () => {
    const { keeper, lock } = await open()
    const lease = keeper.current
    lock.holds = false
    expect(keeper.current).toBeUndefined()
    Object.assign(lock, { holds: true, gained: 2 })
    expect(keeper.current).toBeUndefined()
    keeper.look()
    await eventually(() => keeper.current === lease)
  })

  test('does not count as gained for a renewal that was sent before', async () => {
    const { keeper, lock, sql } = await open()
    await sql.query('begin')
    await sql.query('update aftercommit.processes set started_at = started_at')
    lock.gained = 2
    keeper.look()
    await eventually(async () => {
      const { rowCount } = await sql.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rowCount === 1
    })
    lock.gained = 3
    await sql.query('commit')
    expect(keeper.current).toBeUndefined()
    keeper.look()
    await eventually(() => keeper.current !== undefined)
  })

  test('is given up with the lease when it is missing for longer than that lasts', async () => {
    const { keeper, lock, told, sql } = await open()
    const lease = keeper.current
    Object.assign(lock, { holds: false, lacks: true })
    keeper.look()
    await eventually(async () => (await sql.query('select from aftercommit.live_leases')).rowCount === 0)
    expect(told).toEqual(['held', 'lost'])
    Object.assign(lock, { holds: true, gained: 2, lacks: false })
    keeper.look()
    await eventually(() => keeper.current !== undefined)
    expect(keeper.current).not.toBe(lease)
  })
})

describe('a process beside others', () => {
  test('ends the lease of one whose lock is free for a second, and tells that its work is free', async () => {
    const { url, sql, ...one } = await open()
    const two = await openLeaseKeeper(url)
    const [, holder] = [await holdLock(url, one), await holdLock(url, two)]
    one.keeper.look()
    await eventually(async () => (await sql.query('select from aftercommit.live_leases')).rowCount === 2)
    // Seen alive at least once.
    await eventually(async () => {
      one.keeper.look()
      return (await sql.query('select from aftercommit.live_leases where lockless')).rowCount === 0
    })
    two.lock.holds = false
    await holder.end()
    await eventually(() => {
      one.keeper.look()
      return one.told.includes('freed')
    })
    const { rows } = await sql.query('select process from aftercommit.live_leases')
    expect(rows).toEqual([{ process: one.process }])
  })

  test('leaves one alone that cannot hold a lock, until its lease runs out', async () => {
    const { url, sql, ...one } = await open()
    const two = await openLeaseKeeper(url)
    Object.assign(two.lock, { holds: false, possible: false })
    two.keeper.look()
    await holdLock(url, one)
    await eventually(async () => {
      two.keeper.look()
      return (await sql.query('select from aftercommit.processes where not locked')).rowCount === 1
    })
    await two.keeper.stop()
    expect(one.told).not.toContain('lost')
  })

  test('hears that the work of one that stopped is free', async () => {
    const { url, sql, ...one } = await open()
    const two = await openLeaseKeeper(url)
    for (const each of [one, two]) Object.assign(each.lock, { holds: false, possible: false, gained: 2 })
    await eventually(() => {
      for (const each of [one, two]) each.keeper.look()
      return one.keeper.current !== undefined && two.keeper.current !== undefined
    })
    one.told.length = 0
    await two.keeper.stop()
    // As the notification does that every process hears.
    one.keeper.heardOfChange()
    await eventually(() => one.told.includes('freed'))
    expect((await sql.query('select process from aftercommit.live_leases')).rows).toEqual([{ process: one.process }])
  })
})

test('a process that could not renew its lease for 12 s begins nothing, and works on when it is renewed in time', async () => {
  let now = 0
  const { keeper } = await open({ clock: { ...systemClock, monotonic: () => now } })
  const lease = keeper.current
  now += 11_000
  expect(keeper.current).toBe(lease)
  now += 1_000
  expect(keeper.current).toBeUndefined()
  keeper.look()
  await eventually(() => keeper.current === lease)
})
