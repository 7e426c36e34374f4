/**
 * History that can have forked begins a new epoch: a restore, a promotion, a sequence set back, events removed by force.
 * It is noticed at the start and while running, and a reader that had come further than both histories share is told.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { AftercommitOptions } from '../../src/options.ts'
import { mails, openWorker, work } from '../delivery/support/open-delivering.ts'
import { hurriedClock } from '../log/support/hurried-clock.ts'
import { follow, instance, type OpenLog, SERVERS } from '../log/support/open-log.ts'
import { copyAsStandby, ownServer, temporaryFolder } from '../log/support/own-server.ts'
import { makePartitionsSmall, publishFrontier } from '../log/support/small-partitions.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { hasProgram } from '../support/programs.ts'
import { addressOf, createProxy } from '../support/proxy.ts'

const clock = hurriedClock(20)

describe.each(SERVERS)('on Postgres $major', ({ major }) => {
  it('the log is not truncated, not even by its owner', async () => {
    const { ac, sql } = await installLog({ major })
    await emit({ ac }, 3)
    await expect(sql.query('truncate aftercommit.events')).rejects.toMatchObject({ code: 'AC008' })
    await expect(sql.query('truncate aftercommit.events restart identity cascade')).rejects.toMatchObject({
      code: 'AC008',
    })
    expect(await ac.log.read()).toHaveLength(3)
  })

  it('a truncation by force is noticed while running, and readers go on with what comes', async () => {
    const { logger, lines } = collectingLogger()
    const { ac, sql } = await installLog({ major, clock, logger })
    const reader = follow(ac.log)
    await reader.sees(await publishedAfter({ ac, sql }, 5))
    await sql.query(
      `set session_replication_role = replica; truncate aftercommit.events; reset session_replication_role`,
    )
    await eventually(() => lines.find((line) => line === 'error a new epoch of the log began: events were removed'))
    await reader.sees(await emit({ ac }, 1))
    expect(reader.positions).toEqual([1n, 2n, 3n, 4n, 5n, 6n])
    expect(await epochs(sql)).toEqual([
      { epoch: 1, began_after: '0', reason: 'installed' },
      { epoch: 2, began_after: '5', reason: 'events were removed' },
    ])
  })

  it('a log that was numbered anew stops readers that had come further, and is read from its start by others', async () => {
    const { ac, sql, url } = await installLog({ major, clock })
    const reader = follow(ac.log)
    await reader.sees(await publishedAfter({ ac, sql }, 5))
    await sql.query(`alter table aftercommit.events disable trigger keep_history`)
    await sql.query(`truncate aftercommit.events; alter sequence aftercommit.positions restart`)
    await expect(reader.ended).rejects.toMatchObject({
      code: 'HISTORY_FORKED',
      message: expect.stringContaining('epoch 2'),
    })

    const last = await emit({ ac }, 2)
    const readers = [follow(ac.log), follow(instance({ database: url }).log)]
    for (const one of readers) {
      await one.sees(last)
      expect(one.positions).toEqual([1n, 2n])
    }
  })

  it('a sequence set back is noticed while running and put in front again', async () => {
    const { ac, sql } = await installLog({ major, clock })
    const reader = follow(ac.log)
    await reader.sees(await publishedAfter({ ac, sql }, 5))
    await sql.query(`select setval('aftercommit.positions', 2)`)
    await eventually(async () => (await epochs(sql)).at(-1)?.reason === 'the sequence was set back')
    await reader.sees(await emit({ ac }, 2))
    expect(reader.positions).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n])
  })

  it('a sequence set back below a checkpoint stops the subscription that had passed the new events', async () => {
    const { ac: before, sql, url } = await installLog({ major })
    const handled = subscribe(before)
    await before.start()
    await emit({ ac: before }, 5)
    await sql.query(`select nextval('aftercommit.positions') from generate_series(1, 6)`)
    await publishedAfter({ ac: before, sql }, 1)
    await eventually(() => handled.length === 6)
    // While no process looks: one that noticed between two of the events would put the sequence in front again.
    await before.stop()
    await sql.query(`select setval('aftercommit.positions', 5)`)
    await emit({ ac: instance({ database: url }) }, 5)
    const ac = instance({ database: url })
    subscribe(ac)
    await ac.start()
    await eventually(async () => (await ac.subscriptions.list())[0]?.status === 'stopped')
    expect((await epochs(sql)).at(-1)).toEqual({ epoch: 2, began_after: '5', reason: 'the sequence was set back' })
    expect((await ac.subscriptions.list())[0]?.reason).toContain('history forked after position 5')
    const verdict = await instance({ database: url }).verify()
    expect(verdict).toMatchObject({ ok: false, subscriptions: [{ id: 'lamps', skipped: 5, forked: true }] })
    expect(verdict.late.map(({ position }) => position)).toEqual([6n, 7n, 8n, 9n, 10n])
    await ac.subscriptions.get('lamps').seek(5n)
    await ac.stop()
    const later = instance({ database: url })
    const again = subscribe(later)
    await later.start()
    await eventually(() => again.length === 6)
    expect(again.map((position) => Number(position))).toEqual([6, 7, 8, 9, 10, 12])
  })

  it('a log that was numbered anew and has passed its old frontier since is told by the ids of its events', async () => {
    const { ac, sql, url } = await installLog({ major })
    const handled = subscribe(ac)
    await ac.start()
    await publishedAfter({ ac, sql }, 5)
    await eventually(() => handled.length === 5)
    await ac.stop()
    await sql.query(`alter table aftercommit.events disable trigger keep_history`)
    await sql.query(`truncate aftercommit.events; alter sequence aftercommit.positions restart`)
    await emit({ ac: instance({ database: url }) }, 8)
    const later = instance({ database: url })
    expect(await later.verify()).toMatchObject({ ok: false, subscriptions: [{ id: 'lamps', forked: true }] })
    subscribe(later)
    await later.start()
    await eventually(async () => (await later.subscriptions.list())[0]?.status === 'stopped')
    expect((await epochs(sql)).at(-1)).toEqual({ epoch: 2, began_after: '0', reason: 'events were removed' })
    expect((await later.log.read()).map(({ position }) => position)).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n])
  })

  it.each([
    ['a partition was removed', 150],
    ['events were removed', 0],
  ])('that %s by hand stops a subscription that still needed its events', async (reason, published) => {
    const { ac, sql, url } = await installLog({ major })
    await makePartitionsSmall(sql)
    const handled = subscribe(ac)
    await ac.start()
    await emit({ ac }, 3)
    await eventually(() => handled.length === 3)
    await ac.stop()
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 147)`)
    if (published > 0) await publishFrontier(sql, published)
    await sql.query('drop table aftercommit.events_000000000000')
    const later = instance({ database: url })
    const seen = subscribe(later)
    await later.start()
    await eventually(async () => (await later.subscriptions.list())[0]?.status === 'stopped')
    expect((await later.subscriptions.list())[0]?.reason).toContain('events 4 to 99 were dropped')
    expect((await epochs(sql)).at(-1)?.reason).toBe(reason)
    expect(seen).toEqual([])
    // It is noticed once.
    await later.log.status()
    expect(await epochs(sql)).toHaveLength(2)
  })

  it('a partition that was dropped by hand above the head is no fork', async () => {
    const { ac, sql } = await installLog({ major })
    await makePartitionsSmall(sql)
    await emit({ ac }, 3)
    await sql.query('drop table aftercommit.events_000000000100')
    expect(await ac.log.status()).toMatchObject({ epoch: 1 })
  })

  it.each([
    ['events were removed', `set session_replication_role = replica; truncate aftercommit.events`],
    ['the sequence was set back', `select setval('aftercommit.positions', 2)`],
    ['the database was restored, promoted or moved', `update aftercommit.log_state set identity = 'elsewhere'`],
  ])('that %s is noticed at the start', async (reason, deed) => {
    const { ac, sql, url } = await installLog({ major })
    follow(ac.log)
    await publishedAfter({ ac, sql }, 5)
    await ac.stop()
    await sql.query(deed)
    const later = instance({ database: url })
    const reader = follow(later.log, { from: 5n })
    await later.start()
    expect((await epochs(sql)).at(-1)).toEqual({ epoch: 2, began_after: '5', reason })
    const last = await emit({ ac: later }, 2)
    await reader.sees(last)
    expect(reader.positions).toEqual([6n, 7n])
  })

  it('is begun once, however many processes notice', async () => {
    const { ac, sql, url } = await installLog({ major })
    follow(ac.log)
    await publishedAfter({ ac, sql }, 5)
    await sql.query(`select setval('aftercommit.positions', 2)`)
    const others = Array.from({ length: 8 }, () => instance({ database: url }))
    await Promise.all(others.map((other) => other.log.status()))
    expect(await epochs(sql)).toHaveLength(2)
    const found = await Promise.all(others.map((other) => other.log.status()))
    expect(found.map(({ epoch }) => epoch)).toEqual(Array(8).fill(2))
  })

  it('a sequence that hands out numbers in advance stops reading, at the start and later, until it is mended', async () => {
    const { ac, sql, url } = await installLog({ major, clock })
    const reader = follow(ac.log)
    await reader.sees(await publishedAfter({ ac, sql }, 2))
    await sql.query('alter sequence aftercommit.positions cache 50')
    const isStopped = ({ health }: typeof ac) =>
      !health().ready && JSON.stringify(health().reasons).includes('CACHE 50')
    await eventually(() => isStopped(ac))
    const other = instance({ database: url, clock })
    const second = follow(other.log)
    await eventually(() => isStopped(other))
    const id = await emit({ ac }, 1)
    expect(await ac.log.status()).toMatchObject({ problem: expect.stringContaining('cache 1') })
    expect([reader.ids, second.ids].flat()).not.toContain(id)

    await sql.query('alter sequence aftercommit.positions cache 1')
    await Promise.all([reader.sees(id), second.sees(id)])
    await eventually(() => ac.health().ready && other.health().ready)
  })
})

it.runIf(hasProgram('pg_dump', 'a dump restored elsewhere') && hasProgram('psql', 'a dump restored elsewhere'))(
  'a dump restored elsewhere begins a new epoch, numbers on, and is read on',
  async () => {
    const { ac, sql, url } = await installLog({ major: 14 })
    const reader = follow(ac.log)
    await publishedAfter({ ac, sql }, 8)
    await reader.stop()
    const target = await testDatabase({ major: 14 })
    await restore(url, target.url)

    const restored = instance({ database: target.url })
    expect(await restored.log.status()).toMatchObject({ epoch: 2, head: 8n, problem: null })
    const again = follow(restored.log, { from: 5n })
    const last = await emit({ ac: restored }, 2)
    await again.sees(last)
    expect(again.positions).toEqual([6n, 7n, 8n, 9n, 10n])
    const fork = await epochs(await connect(target.url))
    expect(fork.at(-1)).toEqual({ epoch: 2, began_after: '8', reason: 'the database was restored, promoted or moved' })
    // The original has not forked.
    expect(await ac.log.status()).toMatchObject({ epoch: 1, head: 8n })
  },
)

it('a standby is not followed; once promoted it is a new epoch, and readers beyond the fork are told', async () => {
  const primary = await ownServer()
  const proxy = await createProxy(primary.url)
  const ac = instance({ database: proxy.url, clock })
  await ac.migrate()
  const reader = follow(ac.log)
  await reader.sees(await publishedAfter({ ac, sql: await connect(primary.url) }, 5))

  // A copy of the data as a base backup has it; what the primary writes from here on never reaches the copy.
  await primary.stop()
  const copy = await copyAsStandby(primary)
  await primary.start()
  const shared = await eventually(() => reader.positions.at(-1))
  await reader.sees(await emit({ ac }, 5))

  const standby = await ownServer({ dataDir: copy })
  proxy.switchUpstream(standby.url)
  proxy.dropAll()
  await eventually(() => JSON.stringify(ac.health().reasons).includes('standby'))

  const promoting = await connect(standby.url)
  await promoting.query('select pg_promote()')
  await expect(reader.ended).rejects.toMatchObject({
    code: 'HISTORY_FORKED',
    message: expect.stringContaining(`after position ${shared}`),
  })
  const again = follow(ac.log)
  const last = await emit({ ac }, 2)
  await again.sees(last)
  expect(again.events).toHaveLength(7)
  expect((await epochs(promoting)).at(-1)).toMatchObject({ epoch: 2, began_after: String(shared) })
})

it('work that was done in a history that is lost is done again, although its worker lives', async () => {
  const primary = await ownServer()
  const proxy = await createProxy(primary.url)
  const ac = instance({ database: proxy.url, clock })
  await ac.migrate()
  const reader = follow(ac.log)
  await reader.sees(await publishedAfter({ ac, sql: await connect(primary.url) }, 1))
  const { passed, open } = gate()
  const done: unknown[] = []
  const worker = await openWorker(proxy.url)
  worker.register(
    work(async ({ payload }) => {
      await passed
      done.push(payload)
    }),
  )
  await worker.add(worker.database, mails(5))
  const claimed = async (url: string) => {
    const client = await connect(url)
    const { rows } = await client.query(
      'select count(*)::int as all, count(token)::int as claimed from aftercommit.deliveries',
    )
    await client.end()
    return rows[0]
  }
  await eventually(async () => (await claimed(primary.url)).claimed === 5)
  await primary.stop()
  const copy = await copyAsStandby(primary)
  await primary.start()
  open()
  await eventually(async () => (await claimed(primary.url)).all === 0)
  expect(done).toHaveLength(5)

  const standby = await ownServer({ dataDir: copy })
  expect(await claimed(standby.url)).toEqual({ all: 5, claimed: 5 })
  const promoting = await connect(standby.url)
  await promoting.query('select pg_promote()')
  // The lease of the worker did not run out meanwhile, however slow the machine is.
  await promoting.query(`update aftercommit.processes set lease_until = clock_timestamp() + interval '1 hour'`)
  proxy.switchUpstream(standby.url)
  proxy.dropAll()
  await eventually(async () => (await claimed(standby.url)).all === 0)
  expect(done).toHaveLength(10)
})

/** Installed where it is: a copy of a database, as other tests use, is a fork of history and begins with epoch 2. */
async function installLog({ major, ...options }: Omit<AftercommitOptions, 'database'> & { major: 18 | 14 }) {
  const { url } = await testDatabase({ major })
  const ac = instance({ ...options, database: url })
  await ac.migrate()
  return { ac, url, sql: await connect(url) }
}

/** A subscription from the start, and the positions that it has handled. */
function subscribe(ac: OpenLog['ac']): bigint[] {
  const handled: bigint[] = []
  ac.subscribe({
    id: 'lamps',
    on: ['lamp.lit'],
    from: 'start',
    handle: ({ position }) => {
      handled.push(position)
    },
  })
  return handled
}

/** Appends so many and gives the id of the last. */
async function emit({ ac }: Pick<OpenLog, 'ac'>, count: number): Promise<string> {
  let id = ''
  for (let n = 0; n < count; n++) ({ id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} })))
  return id
}

/** Appends so many, waits until the frontier beyond them is published, as it is within a second, and gives the last id. */
async function publishedAfter({ ac, sql }: Pick<OpenLog, 'ac' | 'sql'>, count: number): Promise<string> {
  const last = await emit({ ac }, count)
  await eventually(async () => {
    const { rows } = await sql.query(
      `select frontier = (select max(position) from aftercommit.events) as published from aftercommit.log_state`,
    )
    return rows[0].published
  })
  return last
}

async function epochs(sql: OpenLog['sql']): Promise<{ epoch: number; began_after: string; reason: string }[]> {
  const { rows } = await sql.query('select epoch, began_after, reason from aftercommit.epochs order by epoch')
  return rows
}

async function restore(from: string, to: string): Promise<void> {
  const file = join(await temporaryFolder(), '..', 'log.sql')
  await run('pg_dump', ['--file', file, '--dbname', libpq(from)])
  await run('psql', ['--quiet', '--no-psqlrc', '--set', 'ON_ERROR_STOP=1', '--file', file, '--dbname', libpq(to)])
}

const run = promisify(execFile)

function libpq(url: string): string {
  const { host, port, user, password, database } = addressOf(url)
  return `host=${host} port=${port} user=${user} dbname=${database}${password ? ` password=${password}` : ''}`
}
