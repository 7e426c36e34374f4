/**
 * Upkeep never stands in the way: an append finds a place whatever upkeep does or fails to do, and nothing is dropped
 * that is not whole, final, out of retention and no longer needed.
 */
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { runUpkeep } from '../../src/log/index.ts'
import type { Database } from '../../src/postgres/index.ts'
import { silentLogger } from '../../src/runtime/index.ts'
import { follow, openLog, SERVERS } from '../log/support/open-log.ts'
import { makePartitionsSmall, partitionNames, publishFrontier } from '../log/support/small-partitions.ts'
import { sessionsWait } from '../log/support/waiting.ts'
import { connect, openDatabase } from '../support/database.ts'

const EMIT = `select aftercommit.emit('lamp.lit', null, null, '{}') as position`

describe.each(SERVERS)('partitions on Postgres $major', ({ major }) => {
  it('are added ahead of the head, and appends and readers cross their bounds', async () => {
    const { ac, sql } = await openSmallLog(major)
    expect(await partitionNames(sql)).toEqual(['events_000000000000', 'events_000000000100', 'events_open'])
    await append(sql, 150)
    expect(await ac.upkeep()).toMatchObject({ added: ['events_000000000200'], postponed: [] })
    await append(sql, 100)
    expect(await ac.upkeep()).toMatchObject({ added: ['events_000000000300'], postponed: [] })
    expect(await ac.upkeep()).toMatchObject({ added: [], postponed: [] })

    // A reader publishes the frontier, and more room is made by the rate at which it moves.
    const reader = follow(ac.log)
    const { id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await reader.sees(id)
    const all = Array.from({ length: 251 }, (_, n) => BigInt(n + 1))
    expect(reader.positions).toEqual(all)
    expect((await ac.log.read({ limit: 1_000 })).map(({ position }) => position)).toEqual(all)
    expect((await ac.log.read({ from: 95n, limit: 10 })).map(({ position }) => position)).toEqual(all.slice(95, 105))
  })

  it('that were not added in time are no reason to refuse an append', async () => {
    const { ac, sql } = await openSmallLog(major)
    await append(sql, 450)
    expect(await ac.upkeep()).toMatchObject({ added: [], postponed: [expect.stringContaining('already holds events')] })
    await append(sql, 1)
    expect((await ac.log.read({ limit: 1_000 })).length).toBe(451)
  })

  it('are not split while somebody appends, who is not waited for, and others append meanwhile', async () => {
    const { ac, url, sql } = await openSmallLog(major)
    await append(sql, 150)
    const appender = await connect(url)
    await appender.query('begin')
    await appender.query(EMIT)
    const upkeep = ac.upkeep()
    // Both queue behind the split for as long as it tries, and then go on while the appender is still open.
    await Promise.all([append(sql, 1), ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))])
    expect(await upkeep).toMatchObject({ added: [], postponed: [expect.stringContaining('an appender is open')] })
    await appender.query('commit')
    expect(await ac.upkeep()).toMatchObject({ added: ['events_000000000200'], postponed: [] })
  })

  it('are dropped when all of it is old, final and not needed, the oldest first', async () => {
    const { database, sql, ac } = await openSmallLog(major)
    await append(sql, 199)
    await ac.upkeep()
    await append(sql, 150)
    await sql.query(`update aftercommit.settings set retention = '1 hour'`)
    await growOld(sql, 1, 250)
    const upkeep = (neededFrom: bigint) =>
      runUpkeep({ database, logger: silentLogger, neededFrom: async () => neededFrom })
    const EVERYTHING = 2n ** 62n

    await publishFrontier(sql, 99)
    expect(await upkeep(EVERYTHING)).toMatchObject({ dropped: [] }) // 99 is final, but 100 ends the partition
    await publishFrontier(sql, 349)
    expect(await upkeep(50n)).toMatchObject({ dropped: [] })
    expect(await upkeep(199n)).toMatchObject({ dropped: ['events_000000000000'] })
    // The third holds events that are not old yet.
    expect(await upkeep(EVERYTHING)).toMatchObject({ dropped: ['events_000000000100'] })
    expect(await upkeep(EVERYTHING)).toMatchObject({ dropped: [] })

    expect((await ac.log.read({ limit: 1 }))[0]).toMatchObject({ position: 200n })
    const { rows } = await sql.query('select kept_from, epoch from aftercommit.log_state')
    expect(rows[0].kept_from).toBe('200')
    // What went by retention is no fork of history.
    const { epoch } = await ac.log.status()
    expect(epoch).toBe(rows[0].epoch)
  })

  it('are all kept while no retention is set', async () => {
    const { ac, sql } = await openSmallLog(major)
    await append(sql, 150)
    await growOld(sql, 1, 150)
    await publishFrontier(sql, 150)
    expect(await ac.upkeep()).toMatchObject({ dropped: [] })
    expect(await ac.log.read({ limit: 1_000 })).toHaveLength(150)
  })

  it('half dropped by somebody who was stopped are dropped by the next', async () => {
    const { ac, sql, url } = await openSmallLog(major)
    await append(sql, 199)
    await growOld(sql, 1, 199)
    await publishFrontier(sql, 199)
    await sql.query(`update aftercommit.settings set retention = '1 hour'`)

    // One was detached and not dropped; of the other the detaching itself was interrupted.
    await sql.query('update aftercommit.log_state set kept_from = 200')
    await sql.query('alter table aftercommit.events detach partition aftercommit.events_000000000000')
    const [reader, stopped] = await Promise.all([connect(url), connect(url)])
    await reader.query('begin')
    await reader.query('select count(*) from aftercommit.events')
    const detaching = stopped.query(
      'alter table aftercommit.events detach partition aftercommit.events_000000000100 concurrently',
    )
    const outcome = detaching.catch((error) => error.code)
    await sessionsWait(url, 1)
    await sql.query(
      'select pg_cancel_backend(pid) from pg_stat_activity where query like $1 and pid <> pg_backend_pid()',
      ['alter table aftercommit.events detach%'],
    )
    expect(await outcome).toBe('57014')
    await reader.query('commit')
    expect((await sql.query('select from pg_inherits where inhdetachpending')).rowCount).toBe(1)
    await append(sql, 50)
    await publishFrontier(sql, 249)

    expect(await ac.upkeep()).toMatchObject({ dropped: ['events_000000000000', 'events_000000000100'] })
    const { rows } = await sql.query(
      `select relname from pg_class where relname ~ '^events_0+[01]00$' and relkind = 'r'`,
    )
    expect(rows).toEqual([])
    expect((await ac.log.read({ limit: 1_000 })).map(({ position }) => position)[0]).toBe(200n)
  })

  it('that are closed are indexed without locking out anybody, and an index that was left invalid is built anew', async () => {
    const { ac, sql, url } = await openSmallLog(major)
    await append(sql, 150)
    await publishFrontier(sql, 150)
    const open = await connect(url)
    await open.query('begin')
    await open.query(EMIT)
    const upkeep = ac.upkeep()
    await append(sql, 10)
    await open.query('commit')
    const indexes = ['correlation', 'causation', 'type'].map((what) => `events_000000000000_${what}`)
    expect((await upkeep).indexed).toEqual(indexes)

    await sql.query(
      `update pg_index set indisvalid = false where indexrelid = 'aftercommit.events_000000000000_causation'::regclass`,
    )
    expect((await ac.upkeep()).indexed).toEqual(['events_000000000000_causation'])
    expect((await ac.upkeep()).indexed).toEqual([])
    const { rows } = await sql.query(
      `select from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relname = any ($1) and i.indisvalid and i.indisready`,
      [indexes],
    )
    expect(rows).toHaveLength(3)
  })

  it('are looked after by one process at a time, whoever comes', async () => {
    const { ac, database, sql } = await openSmallLog(major)
    await append(sql, 150)
    await publishFrontier(sql, 150)
    const reports = await Promise.all([
      ac.upkeep(),
      ...Array.from({ length: 4 }, () => runUpkeep({ database, logger: silentLogger, neededFrom: async () => 0n })),
    ])
    expect(reports.flatMap(({ added }) => added)).toEqual(['events_000000000200'])
    expect(reports.flatMap(({ indexed }) => indexed)).toHaveLength(3)
  })

  it('are searched by time from any of them', async () => {
    const { ac, sql } = await openSmallLog(major)
    await append(sql, 199)
    await ac.upkeep()
    await append(sql, 50)
    // One event a minute, the first at midnight.
    await sql.query(
      `update aftercommit.events set recorded_at = '2025-06-01T00:00:00Z'::timestamptz + position * interval '1 minute'`,
    )
    const since = (minute: number) => new Date(Date.UTC(2025, 5, 1, 0, minute))
    for (const minute of [0, 1, 99, 100, 101, 200, 249]) {
      const found = await ac.log.read({ from: since(minute), limit: 1_000 })
      expect(found[0]?.position).toBe(BigInt(Math.max(minute, 1)))
      expect(found).toHaveLength(250 - Math.max(minute, 1))
    }
    expect(await ac.log.read({ from: since(250) })).toEqual([])
    const reader = follow(ac.log, { from: since(150) })
    const { id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await reader.sees(id)
    expect(reader.positions[0]).toBe(150n)
    expect(reader.positions).toHaveLength(101)
  })
})

async function openSmallLog(major: 18 | 14) {
  const log = await openLog({ major })
  await makePartitionsSmall(log.sql)
  const database: Database = openDatabase({ database: log.url })
  return { ...log, database }
}

async function append(sql: pg.Client, count: number): Promise<void> {
  await sql.query(`${EMIT} from generate_series(1, $1)`, [count])
}

async function growOld(sql: pg.Client, from: number, to: number): Promise<void> {
  await sql.query(
    `update aftercommit.events set recorded_at = now() - interval '2 hours' where position between $1 and $2`,
    [from, to],
  )
}
