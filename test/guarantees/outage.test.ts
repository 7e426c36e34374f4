/**
 * The database goes away in every way it can: sessions end, the network is cut in the middle of a page or of a COMMIT,
 * the server crashes. Nothing is lost, nothing is out of order, and no key is handled twice at the same time.
 */
import { setTimeout as breathe } from 'node:timers/promises'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { instance } from '../log/support/open-log.ts'
import { ownServer } from '../log/support/own-server.ts'
import { emitMany, gate, numbered, openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'

/** A handler that keeps its own ledger and notices when a key is run beside itself. */
function watchfulHandler(workMs: number) {
  const running = new Set<string>()
  const overlaps: string[] = []
  const ended: { id: string; key: string; position: bigint }[] = []
  return {
    overlaps,
    ended,
    distinct: () => new Set(ended.map(({ id }) => id)).size,
    async handle({ id, key, position }: { id: string; key: string; position: bigint }) {
      if (running.has(key)) overlaps.push(id)
      running.add(key)
      await breathe(Math.random() * workMs)
      running.delete(key)
      ended.push({ id, key, position })
    },
  }
}

function firstsAreInOrder(ended: readonly { id: string; key: string; position: bigint }[]): boolean {
  const seen = new Set<string>()
  const last = new Map<string, bigint>()
  return ended.every(({ id, key, position }) => {
    if (seen.has(id)) return true
    seen.add(id)
    const before = last.get(key) ?? 0n
    last.set(key, position)
    return position > before
  })
}

describe('sessions that end', () => {
  it('all of them, again and again, under load', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    const worker = watchfulHandler(3)
    ac.subscribe({ id: 'sub', concurrency: 4, handle: worker.handle })
    await ac.start()
    for (let n = 0; n < 4; n++) {
      await emitMany(200, { keys: 20, prefix: `${n}-` })
      await eventually(() => worker.distinct() > n * 200 + 20)
      await endSessions(sql)
    }
    await eventually(() => worker.distinct() === 800, { deadline: 60_000 })
    expect(worker.overlaps).toEqual([])
    expect(firstsAreInOrder(worker.ended)).toBe(true)
    expect(await ac.deadLetters.count()).toBe(0)
  })

  it('the LISTEN connection alone: nothing is begun until the lock is held again, then all goes on', async () => {
    const { ac, sql, emit, another } = await openSubscriptions()
    const [seen, other] = [recorder(), recorder()]
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('first')
    await seen.sees('first')
    const standby = another()
    standby.subscribe({ id: 'sub', handle: other.handle })
    await standby.start()
    for (let n = 0; n < 5; n++) {
      await sql.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like 'aftercommit:listen %'`,
      )
      await emit(`event-${n}`)
      await eventually(() => [...seen.ids, ...other.ids].includes(`event-${n}`))
    }
    const ids = [...seen.ids, ...other.ids]
    expect(new Set(ids).size).toBe(6)
    expect(ids.length).toBeLessThanOrEqual(11)
  })
})

describe('a network that is cut', () => {
  it('while calls are under way: the same key is not run beside itself, and all is handled', async () => {
    const { url, sql } = await openSubscriptions()
    const proxy = await createProxy(url)
    const ac = instance({ database: proxy.url })
    const blocked = gate()
    const running = new Map<string, number>()
    let most = 0
    const seen = recorder(async ({ key, id }) => {
      running.set(key, (running.get(key) ?? 0) + 1)
      most = Math.max(most, running.get(key)!)
      if (id.startsWith('held-')) await blocked.passed
      running.set(key, running.get(key)! - 1)
    })
    ac.subscribe({ id: 'sub', concurrency: 8, handle: seen.handle })
    await ac.start()
    await emitMany(sql, 4, { keys: 4, prefix: 'held-' })
    await eventually(() => seen.calls.length === 4)
    proxy.reset()
    await emitMany(sql, 100, { keys: 4, prefix: 'later-' })
    // Long enough for a page to fail and for a connection to be refused.
    await eventually(() => !ac.health().ready)
    proxy.pass()
    await eventually(() => ac.health().ready)
    blocked.open()
    await eventually(() => new Set(seen.ids).size === 104, { deadline: 60_000 })
    expect(most).toBe(1)
    expect(await ac.deadLetters.count()).toBe(0)
  })

  it('in the middle of a page: what had come of it is thrown away and read again', async () => {
    const { url, sql } = await openSubscriptions()
    await sql.query(
      `select aftercommit.emit('lamp.lit', null, null, jsonb_build_object('text', repeat('x', 2000)), id => 'event-' || n)
         from generate_series(1, 1500) n`,
    )
    const proxy = await createProxy(url)
    const ac = instance({ database: proxy.url })
    const seen = recorder()
    ac.subscribe({ id: 'sub', checkpoint: 'sync', handle: seen.handle })
    await ac.start()
    for (const bytes of [300_000, 900_000, 1_500_000]) {
      const before = seen.calls.length
      proxy.cutAfter(bytes)
      await eventually(() => seen.calls.length > before + 100 || !ac.health().ready, { deadline: 30_000 })
      proxy.pass()
    }
    await eventually(() => new Set(seen.ids).size === 1_500, { deadline: 60_000 })
    const firsts = [...new Set(seen.ids)]
    expect(firsts).toEqual(numbered(1_500))
  })

  it('in answer to COMMIT: a transactional effect is there once, whether or not it was committed', async () => {
    const { url, sql } = await openSubscriptions()
    await sql.query('create table effects (event_id text)')
    const proxy = await createProxy(url)
    const ac = instance({ database: proxy.url })
    ac.subscribe({
      id: 'sub',
      transactional: true,
      handle: async ({ id }, { tx }) => {
        await tx.query('insert into effects values ($1)', [id])
      },
    })
    await ac.start()
    for (let n = 1; n <= 5; n++) {
      proxy.cutOnCommit()
      await emitMany(sql, 1, { prefix: `cut-${n}-` })
      await eventually(async () => (await sql.query('select from effects')).rowCount! >= n)
      proxy.pass()
      await eventually(async () => {
        const { rows } = await sql.query('select position from aftercommit.checkpoints')
        return Number(rows[0].position) >= n
      })
      // One that is certainly handled after whatever followed from the cut.
      await eventually(() => ac.health().ready)
    }
    await emitMany(sql, 1, { prefix: 'last-' })
    await eventually(async () => (await sql.query(`select from effects where event_id like 'last-%'`)).rowCount === 1)
    const { rows } = await sql.query('select event_id, count(*)::int as n from effects group by 1 having count(*) > 1')
    expect(rows).toEqual([])
    expect((await sql.query('select from effects')).rowCount).toBe(6)
  })
})

describe('a server that crashes', () => {
  it('under load, twice, and is restarted once: everything that was committed is handled, in order', async () => {
    const server = await ownServer()
    const ac = instance({ database: server.url })
    await ac.migrate()
    const worker = watchfulHandler(3)
    ac.subscribe({ id: 'sub', concurrency: 4, handle: worker.handle })
    await ac.start()
    const writing = startWriting(ac)
    await eventually(() => worker.distinct() > 100)
    for (const how of ['crash', 'crash', 'restart']) {
      const before = worker.distinct()
      if (how === 'crash') process.kill(server.pid, 'SIGKILL')
      else await server.stop()
      await server.start()
      await eventually(() => worker.distinct() > before + 100, { deadline: 60_000 })
    }
    const committed = await writing.stop()
    await eventually(() => committed.every((id) => worker.ended.some((call) => call.id === id)), { deadline: 60_000 })
    const { rows } = await (await connect(server.url)).query('select id from aftercommit.events')
    const stored = new Set(rows.map(({ id }) => id))
    expect(worker.ended.filter(({ id }) => !stored.has(id))).toEqual([])
    await eventually(() => worker.distinct() === stored.size)
    expect(worker.overlaps).toEqual([])
    expect(firstsAreInOrder(worker.ended)).toBe(true)
    expect(await ac.deadLetters.count()).toBe(0)
  })
})

async function endSessions(sql: pg.Client): Promise<void> {
  await sql.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'aftercommit:%'`,
  )
}

/** Emits some hundred events a second, whatever happens; answers which COMMITs were answered. */
function startWriting(ac: Aftercommit) {
  const committed: string[] = []
  let running = true
  const ended = (async () => {
    for (let n = 0; running; n++) {
      const id = `event-${n}`
      const aggregate = { type: 'lamp', id: String(n % 20) }
      const emitting = ac.transaction((tx) => tx.emit('lamp.lit', { id, aggregate, payload: {} }))
      await emitting.then(() => committed.push(id)).catch(() => breathe(20))
      await breathe(3)
    }
  })()
  return {
    async stop(): Promise<string[]> {
      running = false
      await ended
      return committed
    },
  }
}
