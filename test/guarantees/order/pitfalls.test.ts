/**
 * Simpler ways to read a log, each of which loses an event or stands still. They are played here, step by step, so that
 * nobody has to find out again; what the library does instead is in src/log/frontier.ts, and the same games won are in
 * snapshot-races.test.ts.
 *
 * In most games the first writer takes position 1 and the second takes 2 and commits: 2 is visible, 1 is still coming.
 */
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { createFrontier, deliverable } from '../../../src/log/frontier.ts'
import { openLog, SERVERS } from '../../log/support/open-log.ts'
import { connect, serverUrl } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { createLedger } from '../support/ledger.ts'
import { createWriter } from '../support/play.ts'
import { beginSilently, prepare } from '../support/two-phase.ts'

const HEAD = 'select max(position) as head from aftercommit.events'
const HOLDERS = `
  select virtualtransaction as holder, pid
    from pg_locks
   where locktype = 'relation'
     and relation = 'aftercommit.positions'::regclass
     and database = (select oid from pg_database where datname = current_database())
     and mode = 'RowExclusiveLock'
     and granted`
const ROWS = 'select position from aftercommit.events order by position'

describe.each(SERVERS)('an event is lost on Postgres $major', ({ major }) => {
  test('by a reader that asks for head, holders and rows in one statement', async () => {
    const { first, second, sql, reader } = await gather(major)
    await take(first)
    await take(second)
    await second.query('commit')
    // The statement has its snapshot and has not scanned the locks yet. That takes microseconds; here it takes as long
    // as this advisory lock is held, which is all the lock is for.
    await sql.query('select pg_advisory_lock(7)')
    const statement = reader.query(
      `with gate as materialized (select 'RowExclusiveLock' as mode from pg_advisory_xact_lock(7))
       select h.holders, (${HEAD}) as head, (select array_agg(position) from (${ROWS}) r) as positions
         from gate
        cross join lateral (select array_agg(holder) as holders from (${HOLDERS.replace(`'RowExclusiveLock'`, 'gate.mode')}) l) h`,
    )
    await waitsForLock(sql)
    await first.query('commit')
    await sql.query('select pg_advisory_unlock(7)')

    const { holders, head, positions } = (await statement).rows[0]
    expect(holders).toBeNull()
    // Nobody holds a number, 1 is not there: a reader concludes that 1 was rolled back and passes it.
    expect({ head, positions }).toEqual({ head: '2', positions: ['2'] })
    expect(await stored(sql)).toEqual(['1', '2'])
  })

  test('by a reader in REPEATABLE READ, where separate statements share a snapshot', async () => {
    const { first, second, sql, reader } = await gather(major)
    await take(first)
    await take(second)
    await second.query('commit')
    await reader.query('begin isolation level repeatable read')
    const head = (await reader.query(HEAD)).rows[0].head
    await first.query('commit')
    const holders = (await reader.query(HOLDERS)).rows
    const read = await stored(reader)
    await reader.query('commit')
    expect({ head, holders, read }).toEqual({ head: '2', holders: [], read: ['2'] })
    expect(await stored(sql)).toEqual(['1', '2'])
  })

  test('by a reader that scans the locks before it reads the head', async () => {
    const { first, second, sql, reader } = await gather(major)
    const holders = (await reader.query(HOLDERS)).rows
    await take(first)
    await take(second)
    await second.query('commit')
    const head = (await reader.query(HEAD)).rows[0].head
    const read = await stored(reader)
    expect({ head, holders, read }).toEqual({ head: '2', holders: [], read: ['2'] })
    await first.query('commit')
    expect(await stored(sql)).toEqual(['1', '2'])
  })

  test('by a reader that passes a gap after some time', async () => {
    const { first, second, sql, reader } = await gather(major)
    const patienceMs = 60_000
    await take(first)
    await take(second)
    await second.query('commit')
    let checkpoint = 0
    const read: number[] = []
    let gapSince: number | undefined
    const poll = async (nowMs: number) => {
      for (const text of await stored(reader)) {
        const position = Number(text)
        if (position <= checkpoint) continue
        gapSince ??= nowMs
        if (position !== checkpoint + 1 && nowMs - gapSince < patienceMs) return
        read.push(position)
        checkpoint = position
      }
    }
    await poll(0)
    expect(read).toEqual([])
    await poll(patienceMs)
    await first.query('commit')
    await poll(patienceMs + 1)
    expect(read).toEqual([2])
    expect(await stored(sql)).toEqual(['1', '2'])
  })

  test('by a reader that finds holders through their process: a prepared transaction has none', async () => {
    const { ac, url, sql, reader } = await openPlayers(major)
    const ledger = createLedger()
    const [first, second] = [createWriter({ ac }, await connect(url), ledger), await connect(url)]
    await beginSilently(first)
    await first.emit()
    const prepared = await prepare(first, url, ledger)
    await take(second)
    await second.query('commit')
    const joined = `select holder from (${HOLDERS}) l join pg_stat_activity a on a.pid = l.pid`
    expect((await reader.query(joined)).rows).toEqual([])
    expect((await reader.query(HOLDERS)).rows).toMatchObject([{ pid: null }])
    expect(await stored(reader)).toEqual(['2'])
    await prepared.commit(sql)
    expect(await stored(sql)).toEqual(['1', '2'])
  })

  /**
   * A plain SELECT can see last_value 32 ahead of what was handed out: nextval writes that value into the row for the
   * log record and then the true one, and a reader of the row does not wait for it. The moment is too short to be met
   * on purpose, so it is taken for granted here; what follows from it is not.
   */
  test('by a reader that takes last_value of the sequence for the head', async () => {
    const { first, second, sql, reader } = await gather(major)
    await take(first)
    await first.query('commit')
    const { last_value: handedOut } = (await reader.query('select last_value from aftercommit.positions')).rows[0]
    expect((await reader.query(HOLDERS)).rows).toEqual([])
    const frontier = createFrontier(0n)
    frontier.observe({ head: BigInt(handedOut) + 32n, holders: [], numberHolders: [] }, 0)
    const read = [1n]
    await take(second)
    await second.query('commit')
    const after = (await stored(reader)).map(BigInt).filter((position) => position > frontier.position)
    read.push(...after.slice(0, deliverable(after, frontier.position, frontier.position).count))
    expect(read).toEqual([1n])
    expect(await stored(sql)).toEqual(['1', '2'])
  })

  test('by any reader when the sequence has a cache, and the library refuses to read', async () => {
    const { ac, first, second, sql, reader } = await gather(major)
    await sql.query('alter sequence aftercommit.positions cache 10')
    expect(await take(first)).toBe('1')
    await first.query('commit')
    expect(await take(second)).toBe('11')
    await second.query('commit')
    const head = (await reader.query(HEAD)).rows[0].head
    expect((await reader.query(HOLDERS)).rows).toEqual([])
    expect({ head, read: await stored(reader) }).toEqual({ head: '11', read: ['1', '11'] })
    // Everything up to 11 is final, says the proof, and so it would be, had 2 to 10 not been handed out already.
    expect(await take(first)).toBe('2')
    await first.query('commit')
    expect(await stored(sql)).toEqual(['1', '2', '11'])
    expect((await ac.log.status()).problem).toMatch(/CACHE 10/)
  })
})

describe.each(SERVERS)('a reader stands still on Postgres $major', ({ major }) => {
  test('that goes by the oldest transaction id, while anybody writes anything anywhere on the server', async () => {
    const { ac, first, sql, reader } = await gather(major)
    await sql.query('create table other_log (position bigserial, xid xid8 default pg_current_xact_id())')
    const elsewhere = await connect(serverUrl(major))
    await elsewhere.query('begin; select pg_current_xact_id()')
    await sql.query('insert into other_log default values')
    await take(first)
    await first.query('commit')
    const below = 'select position from other_log where xid < pg_snapshot_xmin(pg_current_snapshot())'
    expect((await reader.query(below)).rows).toEqual([])
    expect((await ac.log.read()).map(({ position }) => position)).toEqual([1n])
    expect((await reader.query(below)).rows).toEqual([])
    await elsewhere.query('rollback')
  })

  test('that knows holders by their process: a connection that is used again and again never seems to let go', async () => {
    const { first: pooled, reader } = await gather(major)
    const holdersNow = async (): Promise<{ holder: string; pid: number }[]> => (await reader.query(HOLDERS)).rows
    await take(pooled)
    const waitedFor = (await holdersNow())[0]!
    await pooled.query('rollback')
    for (let i = 0; i < 5; i++) {
      await take(pooled)
      const present = await holdersNow()
      expect(present.map(({ pid }) => pid)).toContain(waitedFor.pid)
      expect(present.map(({ holder }) => holder)).not.toContain(waitedFor.holder)
      await pooled.query('commit')
    }
  })
})

async function openPlayers(major: 18 | 14) {
  const log = await openLog({ major })
  return { ...log, reader: await connect(log.url) }
}

async function gather(major: 18 | 14) {
  const players = await openPlayers(major)
  return { ...players, first: await connect(players.url), second: await connect(players.url) }
}

/** Begins a transaction and takes the next position in it. */
async function take(sql: pg.Client): Promise<string> {
  await sql.query('begin')
  const { rows } = await sql.query(`select aftercommit.emit('game.played', null, null, '{}') as position`)
  return rows[0].position
}

async function stored(sql: pg.Client): Promise<string[]> {
  return (await sql.query(ROWS)).rows.map(({ position }) => position)
}

async function waitsForLock(sql: pg.Client): Promise<void> {
  await eventually(async () => {
    const { rowCount } = await sql.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rowCount === 1
  })
}
