import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { createDatabase, type Database, waitUntilReachable } from '../../src/postgres/index.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { connect, openDatabase, openTestDatabase, serverUrl, testDatabase, withDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { addressOf, createProxy } from '../support/proxy.ts'

const answer = async (db: Database) => (await db.query<{ n: number }>('select 1 as n')).rows[0]!.n

describe('connections', () => {
  test('carry their role and the name of the process', async () => {
    const { db, url } = await openTestDatabase({ applicationName: 'web-1' })
    await Promise.all([db.query('select 1'), db.control.query('select 1')])
    const session = await db.openSession('listen')
    const outside = await connect(url)
    const { rows } = await outside.query(
      `select application_name as name from pg_stat_activity where application_name like 'aftercommit:%' and datname = current_database() order by 1`,
    )
    expect(rows.map(({ name }) => name)).toEqual([
      'aftercommit:control web-1',
      'aftercommit:listen web-1',
      'aftercommit:work web-1',
    ])
    session.destroy()
  })

  test('read int8 as text, whatever the application taught the driver', async () => {
    const { db } = await openTestDatabase()
    const before = pg.types.getTypeParser(20)
    pg.types.setTypeParser(20, BigInt)
    try {
      const { rows } = await db.query(`select 9007199254740993::int8 as large, 7::int4 as small, true as flag`)
      expect(rows).toEqual([{ large: '9007199254740993', small: 7, flag: true }])
    } finally {
      pg.types.setTypeParser(20, before)
    }
  })

  test('several statements go in one message and give one result each', async () => {
    const { db } = await openTestDatabase()
    const results = await db.queryMany('select 1 as a; select 2 as b union all select 3')
    expect(results).toEqual([
      { rows: [{ a: 1 }], rowCount: 1 },
      { rows: [{ b: 2 }, { b: 3 }], rowCount: 2 },
    ])
  })

  test('of the reserved pool are free when handlers hold all others', async () => {
    const { db } = await openTestDatabase({ poolSize: 1, connectTimeoutMs: 300 })
    // Connected before: the short time is for the wait for one that is free.
    await eventually(() => Promise.all([answer(db), db.control.query('select 1')]))
    await db.transaction(async () => {
      expect((await db.control.query('select 1 as n')).rows).toEqual([{ n: 1 }])
      await expect(db.query('select 1')).rejects.toMatchObject({ code: 'POOL_EXHAUSTED' })
    })
    expect(await answer(db)).toBe(1)
  })

  test('a URL that is none is refused without repeating it', () => {
    const db = createDatabase({ database: 'mysql://root:hunter2@host/db' })
    return expect(db.query('select 1')).rejects.toSatisfy(
      (error: Error & { code: string }) => error.code === 'BAD_OPTION' && !error.message.includes('hunter2'),
    )
  })

  test('parts work like a URL, with a password that is asked for', async () => {
    const { url, name } = await testDatabase()
    const admin = await connect(url)
    const role = `asked_${name}`
    await admin.query(`create role ${role} login password 'right'`)
    const { host, port } = addressOf(url)
    const db = openDatabase({ database: { host, port, user: role, database: name, password: async () => 'right' } })
    expect((await db.query('select current_user::text as me')).rows).toEqual([{ me: role }])
    await db.close()
    await admin.query(`drop role ${role}`)
  })
})

describe('close', () => {
  test('can be called twice and before anything was connected', async () => {
    const { url } = await testDatabase()
    const db = createDatabase({ database: url })
    await Promise.all([db.close(), db.close()])
    await expect(db.query('select 1')).rejects.toMatchObject({ code: 'STOPPED' })
  })

  test('destroys what is still in use after the time it was given', async () => {
    const { url } = await testDatabase()
    const db = createDatabase({ database: url })
    const stuck = db.query('select pg_sleep(600)').then(
      () => 'answered',
      () => 'ended',
    )
    const outside = await connect(url)
    const running = () =>
      outside.query(`select from pg_stat_activity where query like 'select pg_sleep(600)%' and state = 'active'`)
    await eventually(async () => (await running()).rowCount === 1)
    await db.close(50)
    expect(await stuck).toBe('ended')
  })
})

describe('a bad network', () => {
  async function openThroughProxy(options: Partial<Parameters<typeof openDatabase>[0]> = {}) {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    return { url, proxy, db: openDatabase({ database: proxy.url, ...options }) }
  }

  test('a connection that stalls past the query timeout is destroyed, not returned', async () => {
    const { proxy, db } = await openThroughProxy({ poolSize: 1, queryTimeoutMs: 200 })
    await eventually(() => answer(db))
    const { accepted } = proxy
    proxy.stall()
    await expect(db.query('select 2 as n')).rejects.toThrow('Query read timeout')
    proxy.pass()
    // Were the half-open connection used again, this would receive the answer to the question before.
    expect(await eventually(() => answer(db))).toBe(1)
    expect(proxy.accepted).toBeGreaterThan(accepted)
  })

  test('a transaction that stalls is given up, and the next one begins afresh', async () => {
    const { proxy, db } = await openThroughProxy({ poolSize: 1, queryTimeoutMs: 200 })
    const stalled = db.transaction(async (tx) => {
      proxy.stall()
      await tx.query('select 1')
    })
    await expect(stalled).rejects.toThrow('Query read timeout')
    proxy.pass()
    const next = () => db.transaction(async (tx) => (await tx.query('select 3 as n')).rows)
    expect(await eventually(next)).toEqual([{ n: 3 }])
  })

  test('a reset in the middle of an answer fails that query only', async () => {
    const { proxy, db } = await openThroughProxy({ poolSize: 1 })
    await answer(db)
    proxy.cutAfter(1_000)
    await expect(db.query(`select repeat('x', 1000000) as text`)).rejects.toThrow(/ECONNRESET|terminated/)
    proxy.pass()
    expect(await answer(db)).toBe(1)
  })

  test('answers that come late come in order', async () => {
    const { proxy, db } = await openThroughProxy({ poolSize: 1 })
    proxy.delay(5)
    const results = await db.transaction((tx) =>
      Promise.all([1, 2, 3].map((n) => tx.query<{ n: number }>('select ($1::text)::integer as n', [n]))),
    )
    expect(results.map(({ rows }) => rows[0]!.n)).toEqual([1, 2, 3])
  })

  test('connections in doubt: idle ones are ended, and statements of ours that had no answer for 5 s', async () => {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    let aheadMs = 0
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
    const db = openDatabase({ database: proxy.url, clock })
    await Promise.all([db.query('select 1'), db.control.query('select 1')])
    proxy.stall()
    let isStuck = true
    const stuck = db.control.query('select 1').finally(() => {
      isStuck = false
    })
    stuck.catch(() => {})
    await eventually(() => db.poolStats().control.idle === 0)
    db.distrust()
    await eventually(() => db.poolStats().work.open === 0)
    expect([isStuck, db.poolStats().control.open]).toEqual([true, 1])
    aheadMs = 5_000
    db.distrust()
    await expect(stuck).rejects.toThrow()
    proxy.pass()
    expect(await answer(db)).toBe(1)
  })

  test('connections in doubt: a statement whose backend waits for us is ended, one that the server works on is not', async () => {
    const { proxy, db } = await openThroughProxy({ poolSize: 3 })
    await answer(db)
    proxy.strand()
    const silent = db.query('select 1')
    const worked = db.query<{ n: number }>('select 1 as n from pg_sleep(4)')
    await eventually(() => db.poolStats().work.open === 2 && db.poolStats().work.idle === 0)
    db.distrust()
    await expect(silent).rejects.toThrow()
    expect((await worked).rows).toEqual([{ n: 1 }])
  })

  test('a pool whose connections went silent is not called exhausted', async () => {
    const { proxy, db } = await openThroughProxy({ poolSize: 1, connectTimeoutMs: 1_000 })
    await answer(db)
    proxy.strand()
    const silent = db.query('select 1')
    silent.catch(() => {})
    await eventually(() => db.poolStats().work.idle === 0)
    const waits = db.query('select 2')
    db.distrust()
    await expect(waits).rejects.toMatchObject({
      code: 'DATABASE_UNREACHABLE',
      message: expect.stringContaining('silent'),
    })
    await expect(silent).rejects.toThrow()
    expect(await answer(db)).toBe(1)
  })

  test('a server that accepts and never answers is unreachable after the connect timeout', async () => {
    const { proxy, db } = await openThroughProxy({ connectTimeoutMs: 200 })
    proxy.blackhole()
    await expect(db.query('select 1')).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
  })

  test('a moved server is found where the address leads now', async () => {
    const { proxy, db, url } = await openThroughProxy()
    await answer(db)
    const elsewhere = await createProxy(url)
    proxy.switchUpstream(elsewhere.url)
    proxy.dropAll()
    await eventually(() => answer(db))
    expect(elsewhere.accepted).toBeGreaterThan(0)
  })

  test('all sessions killed again and again: no crash, and full recovery', async () => {
    const { db, url } = await openTestDatabase({ poolSize: 4, applicationName: 'victim' })
    await db.query('create table ticks (id integer primary key)')
    const killer = await connect(url)
    const kill = () =>
      killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'aftercommit:% victim'`,
      )
    let committed = 0
    let failed = 0
    let unknown = 0
    for (let round = 0; round < 15; round++) {
      const work = Array.from({ length: 8 }, (_, index) =>
        db
          .transaction(async (tx) => {
            await tx.query('insert into ticks values (($1::text)::integer)', [round * 100 + index])
            await tx.query('select pg_sleep(0.01)')
          })
          .then(
            () => committed++,
            (error) => (error.code === 'OUTCOME_UNKNOWN' ? unknown++ : failed++),
          ),
      )
      await kill()
      await Promise.all(work)
    }
    // Idle connections die as well, with nobody waiting for an answer.
    await kill()
    await eventually(() => answer(db))
    expect(failed).toBeGreaterThan(0)
    const { rows } = await db.query<{ n: string }>('select count(*) as n from ticks')
    expect(Number(rows[0]!.n)).toBeGreaterThanOrEqual(committed)
    expect(Number(rows[0]!.n)).toBeLessThanOrEqual(committed + unknown)
  })
})

describe('waiting for the server', () => {
  test('that is down when we start, until it is there', async () => {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    proxy.reset()
    const { logger, lines } = collectingLogger()
    const db = openDatabase({ database: proxy.url, logger })
    const errors: unknown[] = []
    await waitUntilReachable(db, {
      onRetry(error) {
        errors.push(error)
        if (errors.length === 2) proxy.pass()
      },
    })
    expect(errors.length).toBeGreaterThanOrEqual(2)
    expect(errors[0]).toMatchObject({ code: 'DATABASE_UNREACHABLE' })
    expect(lines).toContain('warn the database is not reachable yet')
    expect(await answer(db)).toBe(1)
  })

  test.each([
    ['57P03', 'the database system is starting up'],
    ['57P03', 'the database system is in recovery mode'],
    ['53300', 'sorry, too many clients already'],
  ])('%s %s: is waited out', async (sqlstate, message) => {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    proxy.reject(sqlstate, message)
    const db = openDatabase({ database: proxy.url })
    const reasons: string[] = []
    await waitUntilReachable(db, {
      onRetry(error) {
        reasons.push((error as Error).message)
        proxy.pass()
      },
    })
    expect(reasons[0]).toContain(message)
  })

  test('a wrong database or password is not waited for, and no password is shown', async () => {
    const url = withDatabase(serverUrl(), 'no_such_database').replace(/@/, ':hunter2@')
    const db = openDatabase({ database: url })
    const error: Error & { code: string } = await waitUntilReachable(db).then(
      () => expect.fail('there is no such database'),
      (thrown) => thrown,
    )
    expect(error.code).toBe('DATABASE_UNREACHABLE')
    expect(error.message).toContain('no_such_database')
    expect(JSON.stringify([error.message, error.stack])).not.toContain('hunter2')
  })

  test('with a limit gives up after it', async () => {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    proxy.reset()
    const waiting = waitUntilReachable(openDatabase({ database: proxy.url }), { attempts: 2 })
    await expect(waiting).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
  })

  test('ends with its signal', async () => {
    const { url } = await testDatabase()
    const proxy = await createProxy(url)
    proxy.reset()
    const controller = new AbortController()
    const waiting = waitUntilReachable(openDatabase({ database: proxy.url }), {
      signal: controller.signal,
      onRetry: () => controller.abort(new Error('stopped')),
    })
    await expect(waiting).rejects.toThrow('stopped')
  })

  test('connections all taken: a clear error, and work goes on when there is room', async () => {
    const { url, name } = await testDatabase()
    const admin = await connect(url)
    const role = `few_${name}`
    await admin.query(`create role ${role} login password 'few' connection limit 2`)
    const { host, port } = addressOf(url)
    const target = { host, port, user: role, password: 'few', database: name }
    const first = openDatabase({ database: target, poolSize: 2 })
    const second = openDatabase({ database: target, poolSize: 2 })
    await first.transaction(() =>
      first.transaction(async () => {
        const refused = second.query('select 1')
        await expect(refused).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE', cause: { code: '53300' } })
        await expect(refused).rejects.toThrow('too many connections')
      }),
    )
    await first.close()
    expect(await eventually(() => answer(second))).toBe(1)
    await second.close()
    await eventually(() => admin.query(`drop role ${role}`))
  })
})
