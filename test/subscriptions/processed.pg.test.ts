/** Idempotent handlers: the key is claimed with the work, so that nothing is done twice and nothing is left out. */
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Aftercommit, type HandlerContext, idempotent, type Queryable } from '../../src/index.ts'
import type { AnyEvent } from '../../src/log/index.ts'
import { pruneProcessed } from '../../src/subscriptions/index.ts'
import { buildPackage } from '../support/build.ts'
import { connect, openDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { spawnScript } from '../support/processes.ts'
import { openSubscriptions } from './support/open-subscriptions.ts'

const COUNT_EVENTS = fileURLToPath(new URL('./support/count-events.mjs', import.meta.url))

describe.each([{ major: 18 }, { major: 14 }] as const)('idempotent, on Postgres $major', ({ major }) => {
  it('ten deliveries of one event at the same time have one effect', async () => {
    const { ac, sql, event } = await withEffects(major)
    let calls = 0
    const handle = idempotent(async ({ id }: AnyEvent, { tx }: HandlerContext<Queryable>) => {
      calls++
      await tx.query('insert into effects values ($1)', [id])
    })
    await Promise.all(Array.from({ length: 10 }, () => deliver(ac, event, handle)))
    expect(calls).toBe(1)
    expect(await effects(sql)).toEqual([event.id])
  })

  it('a delivery that fails gives the key free for the one that waited behind it', async () => {
    const { ac, sql, event } = await withEffects(major)
    let calls = 0
    const handle = idempotent(async ({ id }: AnyEvent, { tx }: HandlerContext<Queryable>) => {
      calls++
      await tx.query('insert into effects values ($1)', [id])
      if (calls === 1) throw new Error('after the write')
    })
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => deliver(ac, event, handle)))
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1)
    expect(calls).toBe(2)
    expect(await effects(sql)).toEqual([event.id])
  })

  it('two subscriptions with one handler each have their own keys', async () => {
    const { ac, sql, event } = await withEffects(major)
    const handle = idempotent(({ id }: AnyEvent, { tx }: HandlerContext<Queryable>) =>
      tx.query('insert into effects values ($1)', [id]),
    )
    for (const id of ['first', 'second']) ac.subscribe({ id, transactional: true, handle })
    await ac.drain()
    expect(await effects(sql)).toEqual([event.id, event.id])
    expect(await ac.processed.has('first', event.id)).toBe(true)
    expect(await ac.processed.has('third', event.id)).toBe(false)
  })

  it('an event that was processed is passed over after a seek back, unless it is forgotten', async () => {
    const { logger, lines } = collectingLogger()
    const { ac, sql, event } = await withEffects(major)
    ac.subscribe({
      id: 'sub',
      transactional: true,
      handle: idempotent(({ id }, { tx }) => tx.query('insert into effects values ($1)', [id]), { logger }),
    })
    await ac.drain()
    await ac.subscriptions.get('sub').seek(0n)
    await ac.drain()
    expect(await effects(sql)).toEqual([event.id])
    expect(lines).toEqual(['debug duplicate skipped'])

    expect(await ac.processed.forget('sub', { from: event.position, who: 'ann' })).toBe(0)
    expect(await ac.processed.forget('sub', { who: 'ann', reason: 'replay' })).toBe(1)
    await ac.subscriptions.get('sub').seek(0n)
    await ac.drain()
    expect(await effects(sql)).toEqual([event.id, event.id])
    const { rows } = await sql.query(
      `select who, reason from aftercommit.audit where what = 'processed.forget' order by id`,
    )
    expect(rows).toEqual([
      { who: 'ann', reason: null },
      { who: 'ann', reason: 'replay' },
    ])
  })

  it('a subscription that is not transactional is told so, and nothing is handled', async () => {
    const { ac, event } = await withEffects(major)
    let calls = 0
    ac.subscribe({ id: 'sub', retry: { maxAttempts: 1 }, handle: idempotent(() => void calls++) })
    await ac.drain()
    expect(calls).toBe(0)
    const [letter] = await ac.deadLetters.list()
    expect(letter).toMatchObject({ owner: 'sub', error: { code: 'NOT_TRANSACTIONAL' }, event: { id: event.id } })
    expect(letter?.error.message).toContain('idempotencyKey')
  })

  it('mark says who came first, and joins any transaction', async () => {
    const { ac, url, event } = await withEffects(major)
    expect(await ac.processed.mark('sub', event)).toBe(true)
    expect(await ac.processed.mark('sub', event.id)).toBe(false)
    const client = await connect(url)
    await client.query('begin')
    expect(await ac.processed.mark('other', event, { tx: client })).toBe(true)
    await client.query('rollback')
    expect(await ac.processed.has('other', event.id)).toBe(false)
  })
})

describe('processed keys', () => {
  const later = () => new Date(Date.now() + 60_000)

  it('stay while the checkpoint is below their event', async () => {
    const { ac, event } = await withEffects()
    ac.subscribe({ id: 'sub', handle: () => {} })
    await ac.drain()
    await ac.processed.mark('sub', event)
    await ac.subscriptions.get('sub').seek(0n)
    expect(await ac.processed.deleteBefore(later())).toBe(0)
    await ac.drain()
    expect(await ac.processed.deleteBefore(later())).toBe(1)
    expect(await ac.processed.has('sub', event.id)).toBe(false)
  })

  it('stay while a letter or a parked copy of their event is there', async () => {
    const { ac, emit } = await openSubscriptions()
    let broken = true
    ac.subscribe({
      id: 'sub',
      retry: { maxAttempts: 1 },
      handle: () => {
        if (broken) throw new Error('broken')
      },
    })
    const events = [await emit('dead', { key: 'k' }), await emit('parked', { key: 'k' })]
    await ac.drain()
    for (const event of events) await ac.processed.mark('sub', event)
    expect(await ac.processed.deleteBefore(later())).toBe(0)
    broken = false
    await ac.deadLetters.redrive({ owner: 'sub' })
    await eventually(async () => {
      await ac.drain()
      return (await ac.subscriptions.get('sub').status()).parked === 0
    })
    expect(await ac.processed.deleteBefore(later())).toBe(2)
  })

  it('stay when they were written later than the time', async () => {
    const { ac, event } = await withEffects()
    await ac.processed.mark('nobody', event)
    expect(await ac.processed.deleteBefore(new Date(Date.now() - 60_000))).toBe(0)
    expect(await ac.processed.deleteBefore(later())).toBe(1)
  })

  it('are kept for seven days after the checkpoint has passed their event, not after they were written', async () => {
    const { ac, sql, url, event } = await withEffects()
    const db = openDatabase({ database: url })
    ac.subscribe({ id: 'sub', handle: () => {} })
    await ac.drain()
    await ac.processed.mark('sub', event)
    await sql.query(`update aftercommit.processed set processed_at = processed_at - interval '30 days'`)
    expect(await pruneProcessed(db)).toBe(0)
    await sql.query(`update aftercommit.checkpoint_marks set at = at - interval '6 days 23 hours'`)
    expect(await pruneProcessed(db)).toBe(0)
    await sql.query(`update aftercommit.checkpoint_marks set at = at - interval '1 hour'`)
    expect(await pruneProcessed(db)).toBe(1)
    expect(await ac.processed.has('sub', event.id)).toBe(false)
  })

  it('are kept for an event above where the checkpoint stood seven days ago', async () => {
    const { ac, sql, url, emit } = await openSubscriptions()
    const db = openDatabase({ database: url })
    ac.subscribe({ id: 'sub', handle: () => {} })
    const first = await emit('first')
    await ac.drain()
    await ac.processed.mark('sub', first)
    await pruneProcessed(db)
    const second = await emit('second')
    await ac.drain()
    await ac.processed.mark('sub', second)
    await sql.query(`update aftercommit.processed set processed_at = processed_at - interval '30 days'`)
    await sql.query(`update aftercommit.checkpoint_marks set at = at - interval '8 days'`)
    expect(await pruneProcessed(db)).toBe(1)
    expect(await ac.processed.has('sub', second.id)).toBe(true)
    const { rows } = await sql.query('select count(*)::int as n from aftercommit.checkpoint_marks')
    expect(rows).toEqual([{ n: 2 }])
  })
})

describe('a process that is killed', () => {
  beforeAll(buildPackage, 120_000)

  it('between effect and checkpoint, or anywhere, leaves a count that equals the events', async () => {
    const { ac, sql, url, emitMany } = await openSubscriptions()
    await sql.query(`
      create table counts (subscription text, key text, n integer, primary key (subscription, key));
      create table counted (n bigint generated always as identity, subscription text, key text, event_id text)`)
    await emitMany(300, { keys: 7 })
    // The last two are killed anywhere in between, and hang before they have left nothing to the next.
    for (const [last, seen = last] of [
      ['event-1'],
      ['event-50'],
      ['event-120'],
      ['event-200', 'event-127'],
      ['event-280', 'event-207'],
    ]) {
      const child = spawnScript(COUNT_EVENTS, [url, 'counter', last!])
      await child.waitForLine(`wrote ${seen}`)
      child.kill('SIGKILL')
      await child.exited
    }
    const survivor = spawnScript(COUNT_EVENTS, [url, 'counter'])
    await survivor.waitForLine('wrote event-300')
    await eventually(async () => (await ac.subscriptions.get('counter').status()).lag === 0n)
    survivor.kill('SIGTERM')
    const { rows } = await sql.query(
      `select (select sum(n)::int from counts) as counted, count(*)::int as effects, count(distinct event_id)::int as events from counted`,
    )
    expect(rows).toEqual([{ counted: 300, effects: 300, events: 300 }])
    expect(await ac.deadLetters.count()).toBe(0)
    const order = await sql.query('select event_id from counted where key = $1 order by n', ['lamp/3'])
    expect(order.rows.map(({ event_id }) => Number(event_id.slice(6)))).toEqual(
      Array.from({ length: 300 }, (_, i) => i + 1).filter((n) => n % 7 === 3),
    )
  }, 120_000)
})

interface WithEffects {
  ac: Aftercommit
  sql: pg.Client
  url: string
  event: AnyEvent
}

/** A log with one event, and a table for what follows from it. */
async function withEffects(major: 18 | 14 = 18): Promise<WithEffects> {
  const { ac, sql, url, emit } = await openSubscriptions({ major })
  await sql.query('create table effects (event_id text)')
  await emit('the-event', { key: 'k' })
  return { ac, sql, url, event: (await ac.log.get('the-event'))! }
}

/** What the runner does: a transaction of its own, and the event in it. */
function deliver(
  ac: Aftercommit,
  event: AnyEvent,
  handle: (event: AnyEvent, context: HandlerContext<Queryable>) => unknown,
): Promise<unknown> {
  return ac.transaction(async (tx) =>
    handle(event, {
      tx,
      subscription: 'sub',
      attempt: 1,
      redriven: false,
      idempotencyKey: `sub/${event.id}`,
      signal: new AbortController().signal,
    }),
  )
}

async function effects(sql: pg.Client): Promise<string[]> {
  return (await sql.query('select event_id from effects')).rows.map(({ event_id }) => event_id)
}
