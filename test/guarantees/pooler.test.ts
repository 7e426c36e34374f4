/** Little of the database at hand: a transaction-mode pooler, two connections, short timeouts. Slower, and still right. */
import { beforeAll, describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { emitMany, gate, numbered, openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { duplicatesIn, fileLedger, startWorker, watchCheckpoints } from './support/workers.ts'

beforeAll(buildPackage)

describe.runIf(hasPgbouncer())('behind a transaction-mode pooler', () => {
  it('without another address it polls, says so, keeps no session lock, and handles everything once', async () => {
    const { url, sql } = await openSubscriptions()
    const pooled = await startPgbouncer(url, 'transaction')
    const { logger, lines } = collectingLogger()
    const ac = instance({ database: pooled, logger })
    const seen = recorder()
    ac.subscribe({ id: 'sub', handle: seen.handle })
    const effects = recorder()
    ac.subscribe({ id: 'in-a-transaction', transactional: true, handle: effects.handle })
    await emitMany(sql, 300)
    await ac.start()
    await seen.sees('event-300')
    await emitMany(sql, 50, { prefix: 'live-' })
    await seen.sees('live-50')
    await effects.sees('live-50')
    expect(seen.ids).toEqual([...numbered(300), ...numbered(50, 'live-')])
    expect(effects.ids).toEqual(seen.ids)
    expect(lines.some((line) => /^warn no LISTEN here.*directDatabase/.test(line))).toBe(true)
    const { rows } = await sql.query(
      `select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
        where l.locktype = 'advisory' and l.objsubid = 1`,
    )
    expect(rows).toEqual([])
  })

  it('with a direct address it listens, and pauses and redrives are heard at once', async () => {
    const { url, sql } = await openSubscriptions()
    const pooled = await startPgbouncer(url, 'transaction')
    const ac = instance({ database: pooled, directDatabase: url })
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emitMany(sql, 100)
    await seen.sees('event-100')
    await instance({ database: url }).subscriptions.get('sub').pause()
    await emitMany(sql, 10, { prefix: 'later-' })
    await handle.resume()
    await seen.sees('later-10')
    expect(seen.ids).toEqual([...numbered(100), ...numbered(10, 'later-')])
  })

  it('an owner that is killed is replaced when its lease ends', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    const writes = await watchCheckpoints(sql)
    const pooled = await startPgbouncer(url, 'transaction', 8)
    const ledger = fileLedger()
    const release = ledger.flag('release')
    const behaviour = { workMs: 5, holds: { on: 'later-40', until: release.path } }
    const options = { instance: { database: pooled }, subscriptions: [{ id: 'sub', behaviour }] }
    const first = await startWorker(ledger, options)
    await emitMany(sql, 1)
    await ledger.reaches(1)
    // The lease is the first one's; the second only waits for it.
    const second = await startWorker(ledger, options)
    await emitMany(sql, 200, { prefix: 'later-' })
    await eventually(() => ledger.entries().some(({ id }) => id === 'later-40'))
    first.kill('SIGKILL')
    await first.exited
    release.raise()
    await ledger.reaches(201)
    expect(ledger.ended().at(-1)!.pid).toBe(second.pid)
    // What was done twice is what had been finished since the last write.
    expect(duplicatesIn(ledger.ended())).toBeLessThanOrEqual(await writes.unwrittenBy(first, ledger))
    await writes.expectMonotonic()
  })
})

describe('few connections', () => {
  it('ten handlers at once that all need the pool of two finish, and leases and checkpoints go on meanwhile', async () => {
    const { url, sql } = await openSubscriptions()
    const ac = instance({ database: url, poolSize: 2 })
    await sql.query('create table effects (event_id text)')
    const held = gate()
    let inside = 0
    ac.subscribe({
      id: 'sub',
      concurrency: 10,
      handle: ({ id }) =>
        ac.transaction(async (tx) => {
          inside++
          await tx.query('insert into effects values ($1)', [id])
          if (inside <= 2) await held.passed
        }),
    })
    const beside = recorder()
    ac.subscribe({ id: 'beside', checkpoint: 'sync', handle: beside.handle })
    await emitMany(sql, 2_000, { keys: 30 })
    await ac.start()
    // Both connections are taken; what is reserved for pages and checkpoints is not.
    await eventually(() => inside === 2)
    await beside.sees('event-2000')
    await eventually(async () => {
      const { rows } = await sql.query(`select position from aftercommit.checkpoints where subscription_id = 'beside'`)
      return rows[0]?.position === '2000'
    })
    expect(inside).toBe(2)
    held.open()
    await eventually(async () => (await sql.query('select from effects')).rowCount === 2_000)
    expect(await ac.deadLetters.count()).toBe(0)
  })
})

describe('short timeouts of the server', () => {
  it('statements of 50 ms: pages shrink until they fit, and the checkpoint is never beyond what was read', async () => {
    const { url, name } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    // Some of this takes the server far longer than it allows for a page of the usual size.
    await sql.query(
      `select aftercommit.emit('lamp.lit', 'lamp', (n % 7)::text,
                               jsonb_build_object('text', (select string_agg(md5(n::text || i), '') from generate_series(1, 3000) i)),
                               id => 'event-' || n)
         from generate_series(1, 400) n`,
    )
    await emitMany(sql, 20_000, { prefix: 'skipped-', type: 'door.opened' })
    await emitMany(sql, 1, { prefix: 'last-' })
    await sql.query(`alter database ${name} set statement_timeout = '50ms'`)
    const ac = instance({ database: url })
    const behind: bigint[] = []
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', on: ['lamp.lit'], handle: seen.handle })
    await ac.start()
    const watching = (async () => {
      while (!seen.ids.includes('last-1')) {
        const { rows } = await sql.query('select position from aftercommit.checkpoints')
        const most = seen.calls.at(-1)?.position ?? 0n
        if (rows[0] && seen.calls.length < 400) behind.push(most - BigInt(rows[0].position))
      }
    })()
    await eventually(() => seen.ids.includes('last-1'), { deadline: 60_000 })
    await watching
    // A lease that could not be renewed in time either is taken again, and what was not written down comes once more.
    expect([...new Set(seen.ids)]).toEqual([...numbered(400), 'last-1'])
    expect(behind.filter((distance) => distance < 0n)).toEqual([])
    await eventually(async () => (await handle.status()).position === 20_401n)
  })

  it('transactions idle for 300 ms: no handler is called inside one, so slow handlers are safe', async () => {
    const { url, name } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    await sql.query(`alter database ${name} set idle_in_transaction_session_timeout = '300ms'`)
    const { logger, lines } = collectingLogger()
    const ac = instance({ database: url, logger })
    let open = 0
    const seen = recorder(async () => {
      await new Promise((resolve) => setTimeout(resolve, 500))
      const { rowCount } = await sql.query(
        `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
      )
      open += rowCount!
    })
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await emitMany(sql, 3, { keys: 1 })
    await ac.start()
    await eventually(async () => (await ac.subscriptions.get('sub').status()).position === 3n)
    expect(seen.ids).toEqual(numbered(3))
    expect(open).toBe(0)
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([])
  })

  it('transactions idle for 300 ms: a transactional handler that may take longer is refused at the start', async () => {
    const { url, name } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    await sql.query(`alter database ${name} set idle_in_transaction_session_timeout = '300ms'`)
    const refused = instance({ database: url })
    refused.subscribe({ id: 'sub', transactional: true, handle: () => {} })
    const error = await refused.start().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'BAD_OPTION' })
    expect(String(error)).toMatch(/"sub".*idle_in_transaction_session_timeout/)

    const fitting = instance({ database: url })
    const seen = recorder()
    fitting.subscribe({ id: 'sub', transactional: true, timeout: '200ms', handle: seen.handle })
    await emitMany(sql, 3)
    await fitting.start()
    await seen.sees('event-3')
  })
})
