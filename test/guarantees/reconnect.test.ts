/**
 * A reader survives lost connections, a paused process and a crash of the server without skipping or repeating, and a
 * writer whose COMMIT was never answered can find out. The ledger is what the test itself was told.
 */
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { AftercommitError, OutcomeUnknownError } from '../../src/index.ts'
import type { Aftercommit } from '../../src/instance.ts'
import { type Follower, follow, instance, openLog, SERVERS } from '../log/support/open-log.ts'
import { ownServer } from '../log/support/own-server.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { createProxy } from '../support/proxy.ts'

describe.each(SERVERS)('on Postgres $major', ({ major }) => {
  it('a COMMIT that was not answered is an unknown outcome, and repeating it with chosen ids is one event', async () => {
    const { url, sql } = await openLog({ major })
    const proxy = await createProxy(url)
    const ac = instance({ database: proxy.url })
    const paying = () => ac.transaction((tx) => tx.emit('payment.taken', { payload: { amount: 10 }, id: 'payment-1' }))

    proxy.cutOnCommit()
    const error = await paying().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OutcomeUnknownError)
    proxy.pass()
    // The server may still be committing what it got.
    const stored = await eventually(async () => {
      const { rows } = await sql.query(`select position from aftercommit.events where id = 'payment-1'`)
      return rows[0]?.position as string | undefined
    })
    expect(await paying()).toMatchObject({ position: BigInt(stored) })
    expect(await ac.log.read()).toHaveLength(1)
  })

  it('an append without a transaction whose answer was lost says whether it may be repeated', async () => {
    const { url } = await openLog({ major })
    const proxy = await createProxy(url)
    const ac = instance({ database: url })
    const client = await connect(proxy.url)
    await ac.emitNow(client, 'lamp.lit', { payload: {} })
    proxy.cutAfter(0)
    await expect(ac.emitNow(client, 'lamp.lit', { payload: {}, id: 'lamp-1' })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('emitting them again is safe'),
    })
  })

  it('readers and writers get over the end of all their sessions, again and again', async () => {
    const { ac, sql, url } = await openLog({ major })
    const [near, far] = [follow(ac.log), follow(instance({ database: url }).log)]
    const writing = startWriting(ac, 4)
    for (let n = 0; n < 5; n++) {
      await writing.more(200)
      await sql.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like 'aftercommit:%'`,
      )
    }
    await writing.more(200)
    const ledger = await writing.stop()
    for (const reader of [near, far]) await expectLedger(reader, ledger, sql)
  })

  it('a reader that begins at the start while sessions keep ending gets everything, once', async () => {
    const { ac, sql, url } = await openLog({ major })
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 6000)`)
    const last = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    const reader = follow(instance({ database: url }).log)
    await eventually(() => reader.events.length > 0, { every: 1 })
    while (reader.events.length < 6_001) {
      await sql.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like 'aftercommit:%'`,
      )
      const before = reader.events.length
      await eventually(() => reader.events.length > before || reader.events.length === 6_001, { every: 1 })
    }
    await reader.sees(last.id)
    expect(reader.positions).toEqual(Array.from({ length: 6_001 }, (_, n) => BigInt(n + 1)))
  })

  it('every event whose COMMIT was answered is delivered once and in order over crashes of the server', async () => {
    const server = await ownServer({ major })
    const ac = instance({ database: server.url })
    await ac.migrate()
    const reader = follow(ac.log)
    const writing = startWriting(ac, 4)
    for (let crash = 0; crash < 2; crash++) {
      await writing.more(300)
      process.kill(server.pid, 'SIGKILL')
      await server.start()
    }
    await writing.more(300)
    await server.stop() // an orderly restart as well
    await server.start()
    await writing.more(300)
    const ledger = await writing.stop()

    const { rows } = await (await connect(server.url)).query(
      `select count(*)::int as events, max(position)::int as head from aftercommit.events`,
    )
    // Up to 32 numbers are lost with each crash; the reader has passed them.
    expect(rows[0].head).toBeGreaterThan(rows[0].events)
    await expectLedger(reader, ledger, await connect(server.url))
    expect(await ac.log.status()).toMatchObject({ epoch: 1 })
  })
})

describe('a process', () => {
  beforeAll(buildPackage)

  it('that was paused while events were written goes on with the first of them', async () => {
    const { url } = await testDatabase({ migrated: true })
    const writer = await connect(url)
    const emit = (id: string) => writer.query(`select aftercommit.emit('lamp.lit', null, null, '{}', id => $1)`, [id])
    const program = spawnScript(fileURLToPath(new URL('support/tail-and-tell.mjs', import.meta.url)), [url])
    await emit('before')
    await program.waitForLine('read before')

    program.kill('SIGSTOP')
    const ids = Array.from({ length: 100 }, (_, n) => `paused-${n}`)
    for (const id of ids) await emit(id)
    // What it was told while it slept ends for it: its idle mark, and one of its sessions.
    await writer.query(`update aftercommit.idle_marks set idle_until = clock_timestamp() - interval '1 minute'`)
    await writer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name like 'aftercommit:listen %'`,
    )
    program.kill('SIGCONT')

    await program.waitForLine('read paused-99')
    await emit('after')
    await program.waitForLine('read after')
    expect(program.lines.filter((line) => line.startsWith('read '))).toEqual(
      ['before', ...ids, 'after'].map((id) => `read ${id}`),
    )
  })
})

/** Ids whose COMMIT was answered, and ids of which nobody knows. */
interface Told {
  readonly committed: Set<string>
  readonly unknown: Set<string>
}

/** Writers that go on whatever happens to them, and write down what they were told. */
function startWriting(ac: Aftercommit, writers: number) {
  const told: Told = { committed: new Set(), unknown: new Set() }
  let running = true
  let next = 0
  const ended = Array.from({ length: writers }, async () => {
    while (running) {
      const id = `event-${++next}`
      try {
        await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {}, id }))
        told.committed.add(id)
      } catch (error) {
        if (!(error instanceof AftercommitError)) expect(error).toHaveProperty('code')
        if (error instanceof OutcomeUnknownError) told.unknown.add(id)
      }
    }
  })
  return {
    async more(count: number): Promise<void> {
      const goal = told.committed.size + count
      await eventually(() => told.committed.size >= goal, { deadline: 60_000 })
    },
    async stop(): Promise<Told> {
      running = false
      await Promise.all(ended)
      return told
    },
  }
}

/** Everything that was promised arrived, once and in order, and nothing that cannot have been committed. */
async function expectLedger(reader: Follower, { committed, unknown }: Told, sql: pg.Client): Promise<void> {
  const { rows } = await sql.query(`select id from aftercommit.events order by position`)
  const stored: string[] = rows.map(({ id }) => id)
  await reader.sees(stored.at(-1)!)
  expect(reader.ids).toEqual(stored)
  const seen = new Set(stored)
  expect(seen.size).toBe(stored.length)
  expect([...committed].filter((id) => !seen.has(id))).toEqual([])
  expect(stored.filter((id) => !committed.has(id) && !unknown.has(id))).toEqual([])
}
