/** `transactional: true`: what the handler writes and the checkpoint are one transaction, so its effects happen once. */
import { describe, expect, it } from 'vitest'
import type { EmittingTransaction } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { heldTimers } from './support/held-timers.ts'
import { gate, numbered, openSubscriptions, QUICK } from './support/open-subscriptions.ts'

describe.each([{ major: 18 }, { major: 14 }] as const)('on Postgres $major', ({ major }) => {
  it('a handler that fails after writing has written nothing', async () => {
    const { ac, sql, emit } = await openSubscriptions({ major })
    await sql.query('create table effects (event_id text)')
    ac.subscribe({
      id: 'sub',
      transactional: true,
      retry: QUICK,
      handle: async ({ id }, { tx, attempt }) => {
        await tx.query('insert into effects values ($1)', [id])
        if (attempt < 3) throw new Error('after the write')
      },
    })
    await emit('first', { key: 'k1' })
    await emit('second', { key: 'k1' })
    await ac.drain()
    expect((await sql.query('select event_id from effects')).rows).toEqual([
      { event_id: 'first' },
      { event_id: 'second' },
    ])
  })

  it('the checkpoint is there exactly when the effect is', async () => {
    const { ac, sql, emitMany } = await openSubscriptions({ major })
    await sql.query(`create table effects (event_id text, checkpoint bigint)`)
    // Whoever sees the effect sees the checkpoint that came with it, and never one without the other.
    await sql.query(`
      create function look() returns trigger language plpgsql as $$
      begin
        insert into public.seen select new.position, count(*) from public.effects;
        return null;
      end $$;
      create table seen (position bigint, effects bigint);
      create constraint trigger look after update of position on aftercommit.subscription_partitions
        deferrable initially deferred for each row execute function look()`)
    ac.subscribe({
      id: 'sub',
      transactional: true,
      handle: async ({ id }, { tx }) => {
        await tx.query('insert into effects values ($1)', [id])
      },
    })
    await emitMany(100)
    await ac.drain()
    const { rows } = await sql.query('select distinct position, effects from seen order by position')
    expect(rows).toEqual(numbered(100, '').map((n) => ({ position: n, effects: n })))
  })

  it('conflicts are repeated, and the effect is written once', async () => {
    const { ac, sql, emit } = await openSubscriptions({ major })
    await sql.query('create table effects (event_id text)')
    let conflicts = 3
    ac.subscribe({
      id: 'sub',
      transactional: true,
      retry: { maxAttempts: 1 },
      handle: async ({ id }, { tx }) => {
        await tx.query('insert into effects values ($1)', [id])
        if (conflicts-- > 0) await tx.query(`do $$ begin raise exception 'not now' using errcode = '40001'; end $$`)
      },
    })
    await emit('event')
    await ac.drain()
    expect((await sql.query('select from effects')).rowCount).toBe(1)
    expect(await ac.deadLetters.count()).toBe(0)
  })
})

describe('a transaction that is over for its handler', () => {
  it('when the time is up: later calls are refused, nothing was written, and the next try writes', async () => {
    const time = heldTimers(77_000)
    const { ac, sql, emit } = await openSubscriptions({ clock: time.clock })
    await sql.query('create table effects (event_id text, attempt int)')
    const inside = gate()
    const late = gate()
    let refused: unknown
    ac.subscribe({
      id: 'sub',
      transactional: true,
      timeout: '77s',
      retry: QUICK,
      handle: async ({ id }, { tx, attempt }) => {
        await tx.query('insert into effects values ($1, ($2::text)::int)', [id, String(attempt)])
        if (attempt > 1) return
        inside.open()
        await late.passed
        refused = await tx.query('select 1').catch((error: unknown) => error)
      },
    })
    await emit('event')
    await ac.start()
    await inside.passed
    time.fire()
    // Its connection goes with it: the server has forgotten the transaction before the handler has ended.
    await eventually(async () => {
      const { rowCount } = await sql.query(
        `select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
      )
      return rowCount === 0
    })
    late.open()
    await eventually(async () => (await sql.query('select from effects')).rowCount === 1)
    expect(refused).toMatchObject({ code: 'TX_ENDED' })
    expect((await sql.query('select attempt from effects')).rows).toEqual([{ attempt: 2 }])
  })

  it('when the lease is gone: nothing is written, neither effect nor checkpoint', async () => {
    const { ac, sql, emit, another } = await openSubscriptions()
    await sql.query('create table effects (event_id text, by text)')
    const inside = gate()
    const taken = gate()
    ac.subscribe({
      id: 'sub',
      transactional: true,
      handle: async ({ id }, { tx }) => {
        await tx.query(`insert into effects values ($1, 'old')`, [id])
        inside.open()
        await taken.passed
      },
    })
    await emit('event')
    await ac.start()
    await inside.passed
    const next = another()
    next.subscribe({
      id: 'sub',
      instances: 'single',
      transactional: true,
      handle: async ({ id }, { tx }) => {
        await tx.query(`insert into effects values ($1, 'new')`, [id])
      },
    })
    await next.start()
    await eventually(async () => (await sql.query('select from effects')).rowCount === 1)
    taken.open()
    await ac.stop()
    expect((await sql.query('select event_id, by from effects')).rows).toEqual([{ event_id: 'event', by: 'new' }])
  })

  it('when it was committed: a tx that was kept cannot be used', async () => {
    const { ac, emit } = await openSubscriptions()
    let kept: EmittingTransaction<never> | undefined
    ac.subscribe({
      id: 'sub',
      transactional: true,
      handle: (_, { tx }) => {
        kept = tx as never
      },
    })
    await emit('event')
    await ac.drain()
    await expect(kept!.query('select 1')).rejects.toMatchObject({ code: 'TX_ENDED' })
  })
})

describe('beside other writes of the checkpoint', () => {
  it('one that was sent earlier and arrives later does not undo it', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    await sql.query(`create table moves (n bigserial, position bigint)`)
    // Holds back what the control connections send, before they have locked the row.
    await sql.query(`
      create function held_back() returns trigger language plpgsql as $$
      begin
        if current_setting('application_name') like 'aftercommit:control%' then perform pg_sleep(0.4); end if;
        return null;
      end $$;
      create trigger held_back before update on aftercommit.subscription_partitions
        for each statement execute function held_back();
      create function note() returns trigger language plpgsql as $$
      begin
        insert into public.moves (position) values (new.position);
        return null;
      end $$;
      create trigger note after update of position on aftercommit.subscription_partitions
        for each row execute function note()`)
    const handled: string[] = []
    ac.subscribe({
      id: 'sub',
      on: ['lamp.lit'],
      transactional: true,
      handle: ({ id }) => void handled.push(id),
    })
    await ac.start()
    // Passing what does not match is written in the background, while what matches is committed beside it.
    for (let n = 1; n <= 8; n++) {
      await emit(`skipped-${n}`, { type: 'door.opened' })
      await emit(`handled-${n}`)
      await eventually(() => handled.length === n)
    }
    await eventually(async () => (await ac.subscriptions.get('sub').status()).position === 16n)
    const { rows } = await sql.query('select position from moves order by n')
    const positions = rows.map(({ position }) => Number(position))
    expect(positions).toEqual([...positions].sort((a, b) => a - b))
  })

  it('a handler that opens a second transaction is refused by name, and twenty of them do not block each other', async () => {
    const { ac, sql, emit } = await openSubscriptions({ poolSize: 2 })
    await sql.query('create table effects (event_id text)')
    for (let n = 1; n <= 20; n++) {
      ac.subscribe({
        id: `sub-${n}`,
        transactional: true,
        retry: QUICK,
        handle: ({ id }) => ac.transaction((other) => other.query('insert into effects values ($1)', [id])),
      })
    }
    await emit('first', { key: 'k1' })
    await ac.drain()
    expect((await sql.query('select event_id from effects')).rows).toEqual([])
    const letters = await ac.deadLetters.list()
    expect(letters.map(({ owner }) => owner).sort()).toEqual(numbered(20, 'sub-').sort())
    expect(letters[0]!.error).toMatchObject({ code: 'NESTED_TRANSACTION' })
    expect(letters[0]!.error.message).toContain('context.tx')
  })

  it("a transaction that begins after the handler has ended, or that belongs to another instance, is nobody else's", async () => {
    const { ac, sql, emit, another } = await openSubscriptions()
    await sql.query('create table effects (event_id text)')
    const other = another()
    const ended = gate()
    let later: Promise<unknown> | undefined
    ac.subscribe({
      id: 'sub',
      transactional: true,
      retry: QUICK,
      handle: async ({ id }) => {
        await other.transaction((tx) => tx.query('insert into effects values ($1)', [`${id}, other`]))
        later = ended.passed.then(() => ac.transaction((tx) => tx.query('insert into effects values ($1)', [id])))
      },
    })
    await emit('first', { key: 'k1' })
    await ac.drain()
    ended.open()
    await later
    expect((await sql.query('select event_id from effects order by 1')).rows).toEqual([
      { event_id: 'first' },
      { event_id: 'first, other' },
    ])
  })

  it('what a handler lost to another service counts as an attempt while nothing commits', async () => {
    const { ac, emit } = await openSubscriptions()
    ac.subscribe({
      id: 'sub',
      transactional: true,
      retry: QUICK,
      handle: () => {
        throw Object.assign(new Error('connect ECONNREFUSED 192.0.2.1:443'), { code: 'ECONNREFUSED' })
      },
    })
    await emit('first', { key: 'k1' })
    await ac.drain()
    expect(await ac.deadLetters.list()).toMatchObject([{ owner: 'sub', attempts: 4 }])
  })
})
