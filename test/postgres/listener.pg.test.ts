import { describe, expect, onTestFinished, test } from 'vitest'
import { createListener, type Database, type ListenerOptions } from '../../src/postgres/index.ts'
import { createHealth, systemClock } from '../../src/runtime/index.ts'
import { connect, openDatabase, openTestDatabase, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { createProxy } from '../support/proxy.ts'

function listen(db: Database, options: Partial<ListenerOptions> = {}) {
  const heard: string[] = []
  let reconnects = 0
  const listener = createListener({
    db,
    processId: 'p1',
    onNotify: (payload) => heard.push(payload),
    onReconnect: () => reconnects++,
    heartbeatMs: 50,
    heartbeatTimeoutMs: 30_000,
    ...options,
  })
  onTestFinished(() => listener.stop())
  return { listener, heard, reconnects: () => reconnects }
}

const ring = (db: Database, payload: string) =>
  db.query('select pg_notify($1::text, $2::text)', [db.schemaName.channel, payload])

async function holdersOf(db: Database, key: string): Promise<number> {
  const { rows } = await db.query<{ n: string }>(
    `select count(*) as n from pg_locks
      where locktype = 'advisory' and granted and objsubid = 1
        and ((classid::bigint << 32) | objid::bigint) = hashtextextended($1::text, 0)`,
    [key],
  )
  return Number(rows[0]!.n)
}

describe.each([18, 14] as const)('listening on Postgres %i', (major) => {
  test('what is rung is heard, and the self-test is not', async () => {
    const { db } = await openTestDatabase({ major })
    const { listener, heard, reconnects } = listen(db)
    await listener.start()
    await eventually(() => listener.mode === 'listening')
    expect(reconnects()).toBe(1)
    await ring(db, 'hello')
    await eventually(() => heard.length > 0)
    expect(heard).toEqual(['hello'])
  })

  test('a lost connection is made again, and the owner is told to catch up', async () => {
    const { db, url } = await openTestDatabase({ major })
    const { listener, heard, reconnects } = listen(db)
    await listener.start()
    await eventually(() => listener.mode === 'listening')
    const killer = await connect(url)
    await killer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name like 'aftercommit:listen%' and datname = current_database()`,
    )
    await eventually(() => reconnects() >= 2)
    await ring(db, 'again')
    await eventually(() => heard.includes('again'))
  })
})

test('the session lock proves that the process lives, is recorded once it is held, and ends with the process', async () => {
  const { db } = await openTestDatabase()
  const recorded: { key: string; holders: number }[] = []
  const { listener } = listen(db, {
    recordLock: async (_, key) => void recorded.push({ key, holders: await holdersOf(db, key) }),
  })
  await listener.start()
  await eventually(() => listener.holdsLock)
  expect(recorded).toEqual([{ key: listener.lockKey, holders: 1 }])
  await listener.stop()
  expect([listener.holdsLock, listener.lockKey]).toEqual([false, null])
  await eventually(async () => (await holdersOf(db, recorded[0]!.key)) === 0)
})

test('every gain of the lock is counted and told, so that who relies on it knows that it was gone', async () => {
  const { db } = await openTestDatabase()
  const gains: number[] = []
  const { listener } = listen(db, { onLock: () => void gains.push(listener.locksGained) })
  await listener.start()
  await eventually(() => gains.length === 1)
  await db.query(
    `select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  )
  await eventually(() => gains.length === 2)
  expect(gains).toEqual([1, 2])
  expect(listener.holdsLock).toBe(true)
})

test('a connection that is ended every ten seconds is made again each time without a delay', async () => {
  let now = 0
  const slept: number[] = []
  const clock = {
    ...systemClock,
    monotonic: () => now,
    sleep: (ms: number, signal?: AbortSignal) => {
      slept.push(ms)
      return systemClock.sleep(ms, signal)
    },
  }
  const { url } = await testDatabase()
  const { logger, lines } = collectingLogger()
  const db = openDatabase({ database: url, clock, logger })
  const { listener, reconnects } = listen(db)
  const killer = await connect(url)
  await listener.start()
  for (let n = 1; n <= 5; n++) {
    await eventually(() => reconnects() === n && listener.holdsLock)
    now += 10_000
    await killer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name like 'aftercommit:listen%' and datname = current_database()`,
    )
  }
  await eventually(() => reconnects() === 6)
  expect(slept).toEqual([])
  expect(lines.filter((line) => line.includes('LISTEN connection was lost and is made again'))).toHaveLength(5)
})

test('a process that cannot hold its lock for longer than the limit lacks it and is not ready, until it holds it again', async () => {
  const { url } = await testDatabase()
  const proxy = await createProxy(url)
  const db = openDatabase({ database: url, directDatabase: proxy.url, connectTimeoutMs: 500 })
  const health = createHealth()
  const { listener } = listen(db, { health, lockLimitMs: 50 })
  await listener.start()
  await eventually(() => listener.holdsLock)
  expect([listener.lacksLock, health.check().ready]).toEqual([false, true])
  proxy.lose()
  await eventually(() => listener.lacksLock)
  expect(health.check().reasons).toContain(
    'this process could not prove that it is alive for longer than a lease: it has no LISTEN connection',
  )
  proxy.pass()
  await eventually(() => listener.holdsLock)
  expect([listener.lacksLock, health.check().ready]).toEqual([false, true])
})

test('a schema with a strange name has a bell of its own', async () => {
  const { url } = await testDatabase()
  const odd = openDatabase({ database: url, schema: `Odd "x'; y` })
  const plain = openDatabase({ database: url })
  const a = listen(odd)
  const b = listen(plain)
  await Promise.all([a.listener.start(), b.listener.start()])
  await eventually(() => a.listener.mode === 'listening' && b.listener.mode === 'listening')
  await ring(odd, 'odd')
  await ring(plain, 'plain')
  await eventually(() => a.heard.length > 0 && b.heard.length > 0)
  expect([a.heard, b.heard]).toEqual([['odd'], ['plain']])
})

describe('a bad network', () => {
  async function listenThroughProxy(options: Partial<ListenerOptions> = {}) {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    const { logger, lines } = collectingLogger()
    const db = openDatabase({ database: url, directDatabase: proxy.url, logger, connectTimeoutMs: 500 })
    return { proxy, db, lines, ...listen(db, { heartbeatTimeoutMs: 200, ...options }) }
  }

  test('a connection that stalls is noticed by its heartbeat and made again', async () => {
    const { proxy, listener, reconnects } = await listenThroughProxy()
    await listener.start()
    await eventually(() => listener.mode === 'listening')
    proxy.stall()
    await eventually(() => listener.state === 'restarting')
    proxy.pass()
    await eventually(() => reconnects() >= 2)
  })

  test('a server that is down at the start is waited for', async () => {
    const { proxy, listener, lines } = await listenThroughProxy()
    proxy.reset()
    await listener.start()
    await eventually(() => lines.some((line) => line.includes('listener failed')))
    expect(listener.mode).toBe('connecting')
    proxy.pass()
    await eventually(() => listener.mode === 'listening')
  })

  test('a server in recovery is waited for', async () => {
    const { proxy, listener } = await listenThroughProxy()
    proxy.reject('57P03', 'the database system is in recovery mode')
    await listener.start()
    await eventually(() => listener.state === 'restarting')
    proxy.pass()
    await eventually(() => listener.mode === 'listening')
  })

  test('it stops at once while connecting, and may be stopped twice', async () => {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    const db = openDatabase({ database: url, directDatabase: proxy.url, connectTimeoutMs: 3_600_000 })
    const { listener } = listen(db)
    proxy.blackhole()
    await listener.start()
    await eventually(() => proxy.accepted === 1)
    await Promise.all([listener.stop(), listener.stop()])
    expect(listener.state).toBe('stopped')
  })
})

test('a direct address that leads to another database is found out by the self-test', async () => {
  const { url } = await testDatabase()
  const { logger, lines } = collectingLogger()
  const db = openDatabase({ database: url, directDatabase: (await testDatabase()).url, logger })
  const { listener } = listen(db, { selfTestTimeoutMs: 200, retestMs: 20 })
  await listener.start()
  await eventually(() => listener.mode === 'unavailable')
  expect(listener.reason).toContain('must lead to the same database')
  expect(listener.holdsLock).toBe(false)
  expect(lines.filter((line) => line.includes('readers poll'))).toHaveLength(1)
})
