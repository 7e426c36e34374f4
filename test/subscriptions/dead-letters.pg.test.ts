/** Dead letters: what is kept, how they are found, and what redrive and discard do. The owner alone runs anything. */
import { describe, expect, it } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { dropHistory } from './support/dropped-history.ts'
import { gate, numbered, openSubscriptions, QUICK, recorder } from './support/open-subscriptions.ts'

/** `n` letters of subscription `sub`, each of a key of its own, and the word that makes its handler succeed. */
async function withLetters(n: number, options: { onFailure?: 'park' | 'skip' } = {}) {
  const open = await openSubscriptions()
  let broken = true
  const seen = recorder(({ id }) => {
    if (broken && id.startsWith('event-')) throw new GiveUp(`no room for ${id}`)
  })
  open.ac.subscribe({ id: 'sub', failingAfter: 1_000, ...options, handle: seen.handle })
  await open.ac.start()
  await open.emitMany(n, { keys: n })
  await eventually(async () => (await open.ac.deadLetters.count()) === n)
  return { ...open, seen, mend: () => (broken = false) }
}

describe('a letter', () => {
  it('says what, for whom, why and how often, and carries the whole event', async () => {
    const { ac, emit } = await openSubscriptions()
    ac.subscribe({
      id: 'sub',
      retry: QUICK,
      handle: () => {
        throw Object.assign(new TypeError('no such column'), { code: '42703' })
      },
    })
    const { position } = await emit('event', { key: 'k1', payload: { total: 90 } })
    await ac.drain()
    const [letter] = await ac.deadLetters.list()
    expect(letter).toMatchObject({ kind: 'subscription', owner: 'sub', key: 'lamp/k1', attempts: 4, status: 'dead' })
    expect(letter!.error).toEqual({ name: 'TypeError', code: '42703', message: 'no such column' })
    expect(letter!.event).toMatchObject({ id: 'event', position, payload: { total: 90 } })
    expect(letter!.firstAttemptAt.getTime()).toBeLessThan(letter!.lastAttemptAt.getTime())
    expect(await ac.deadLetters.show(letter!.id)).toEqual(letter)
    expect(await ac.deadLetters.show(letter!.id + 1n)).toBeUndefined()
  })

  it('keeps no stack, no row of the database and no secret, unless stacks were asked for', async () => {
    const { ac, emit, another } = await openSubscriptions()
    const broken = () => {
      throw Object.assign(new Error('no answer from postgres://me:hunter2@db/shop'), {
        detail: 'Key (card)=(4111) exists',
      })
    }
    ac.subscribe({ id: 'sub', retry: { maxAttempts: 1 }, handle: broken })
    await emit('event')
    await ac.drain()
    const stored = JSON.stringify((await ac.deadLetters.list())[0]!.error)
    expect(stored).not.toMatch(/hunter2|4111|stack| at /)
    const next = another({ dlq: { storeStacks: true } })
    next.subscribe({ id: 'with-stacks', retry: { maxAttempts: 1 }, handle: broken })
    await next.drain()
    const [withStack] = await next.deadLetters.list({ owner: 'with-stacks' })
    expect(withStack!.error.stack).toMatch(/dead-letters/)
    expect(JSON.stringify(withStack!.error)).not.toMatch(/hunter2/)
  })

  it('is one per subscription and event: a second failure updates it', async () => {
    const { ac, seen } = await withLetters(1)
    const [first] = await ac.deadLetters.list()
    await ac.deadLetters.redrive(first!.id)
    await eventually(async () => (await ac.deadLetters.list())[0]!.attempts === 2)
    const letters = await ac.deadLetters.list()
    expect(letters).toHaveLength(1)
    expect(letters[0]).toMatchObject({ id: first!.id, status: 'dead', firstAttemptAt: first!.firstAttemptAt })
    expect(letters[0]!.lastAttemptAt.getTime()).toBeGreaterThan(first!.lastAttemptAt.getTime())
    expect(seen.calls).toHaveLength(2)
  })

  it('can be redriven after the log has dropped its event, with what waits behind it', async () => {
    const { ac, emit, sql } = await openSubscriptions()
    let broken = true
    const payloads: unknown[] = []
    ac.subscribe({
      id: 'sub',
      handle: (event) => {
        if (broken) throw new GiveUp('never')
        payloads.push(event.payload)
      },
    })
    await ac.start()
    await emit('first', { key: 'k1', payload: { n: 1 } })
    await emit('second', { key: 'k1', payload: { n: 2 } })
    await eventually(async () => (await ac.deadLetters.list())[0]?.waiting === 1)
    await dropHistory(sql, 3n)
    broken = false
    await ac.deadLetters.redrive({})
    await eventually(() => payloads.length === 2)
    expect(payloads).toEqual([{ n: 1 }, { n: 2 }])
  })
})

describe('finding letters', () => {
  it('newest first, a page at a time', async () => {
    const { ac } = await withLetters(25)
    const first = await ac.deadLetters.list({ limit: 10 })
    const second = await ac.deadLetters.list({ limit: 10, before: first.at(-1)!.id })
    const third = await ac.deadLetters.list({ limit: 10, before: second.at(-1)!.id })
    const ids = [...first, ...second, ...third].map(({ event }) => event.id)
    expect(ids).toEqual(numbered(25).reverse())
    await expect(async () => ac.deadLetters.list({ limit: 0 })).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })

  it('by owner, key, status, event, error and age', async () => {
    const { ac } = await withLetters(3)
    const [last] = await ac.deadLetters.list()
    await ac.deadLetters.discard(last!.id, { who: 'me', reason: 'a test order' })
    expect(await ac.deadLetters.count({ owner: 'sub' })).toBe(3)
    expect(await ac.deadLetters.count({ owner: 'other' })).toBe(0)
    expect(await ac.deadLetters.count({ kind: 'action' })).toBe(0)
    expect(await ac.deadLetters.count({ status: 'dead' })).toBe(2)
    expect(await ac.deadLetters.count({ key: 'lamp/1' })).toBe(1)
    expect(await ac.deadLetters.count({ eventId: 'event-2' })).toBe(1)
    expect(await ac.deadLetters.count({ error: 'no room for event-1' })).toBe(1)
    expect(await ac.deadLetters.count({ untouchedMs: 300_000 })).toBe(0)
    expect(await ac.deadLetters.show(last!.id)).toMatchObject({ who: 'me', reason: 'a test order' })
  })

  it('all of them as plain JSON, with the whole event', async () => {
    const { ac } = await withLetters(5)
    const lines: Record<string, unknown>[] = []
    for await (const letter of ac.deadLetters.export({ owner: 'sub' })) lines.push(JSON.parse(JSON.stringify(letter)))
    expect(lines).toHaveLength(5)
    expect(lines[0]).toMatchObject({ owner: 'sub', status: 'dead', event: { id: 'event-5', payload: {} } })
  })

  it('in the views that SQL users rely on', async () => {
    const { sql } = await withLetters(1)
    const { rows } = await sql.query(
      `select kind, owner, event_id, position, event ->> 'id' as event, error ->> 'message' as error, attempts,
              first_attempt_at is not null and last_attempt_at is not null as times, status
         from aftercommit.dead_letters`,
    )
    expect(rows).toEqual([
      {
        kind: 'subscription',
        owner: 'sub',
        event_id: 'event-1',
        position: '1',
        event: 'event-1',
        error: 'no room for event-1',
        attempts: 1,
        times: true,
        status: 'dead',
      },
    ])
    await sql.query(`select event_id, relay, published_at from aftercommit.outbox`)
    await sql.query(`select event_id, subscription_id, processed_at from aftercommit.processed_events`)
  })
})

describe('redrive', () => {
  it('of one, of several and of a filter tells how many it changed, and runs those', async () => {
    const { ac, seen, mend, sql } = await withLetters(6)
    mend()
    const ids = (await ac.deadLetters.list()).map(({ id }) => id).reverse()
    expect(await ac.deadLetters.redrive(ids[0]!, { who: 'olga', reason: 'mended' })).toBe(1)
    expect(await ac.deadLetters.redrive([ids[1]!, ids[2]!, 999_999n])).toBe(2)
    expect(await ac.deadLetters.redrive({ owner: 'sub', error: 'event-6' })).toBe(1)
    await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 4)
    expect(seen.ids.slice(6).sort()).toEqual(['event-1', 'event-2', 'event-3', 'event-6'])
    expect(await ac.deadLetters.redrive(ids[0]!)).toBe(0)
    const { rows } = await sql.query(`select who, what, reason from aftercommit.audit order by at limit 1`)
    expect(rows).toEqual([{ who: 'olga', what: 'letter.redrive', reason: 'mended' }])
  })

  it('pressed in several places at once runs the letter once', async () => {
    const { ac, seen, mend, another } = await withLetters(1)
    mend()
    const consoles = [ac, another(), another(), another()]
    const changed = await Promise.all(consoles.map((each) => each.deadLetters.redrive({ owner: 'sub' })))
    expect(changed.sort()).toEqual([0, 0, 0, 1])
    await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 1)
    expect(seen.ids).toEqual(['event-1', 'event-1'])
  })

  it('of one that is being run changes nothing', async () => {
    const { ac, emit } = await openSubscriptions()
    const inside = gate()
    const blocked = gate()
    const seen = recorder(async ({ attempt, id }) => {
      if (id !== 'event') return
      if (seen.calls.length === 1) throw new GiveUp('at first')
      inside.open()
      await blocked.passed
      expect(attempt).toBe(1)
    })
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('event')
    await eventually(async () => (await ac.deadLetters.redrive({})) === 1)
    await inside.passed
    expect(await ac.deadLetters.redrive({})).toBe(0)
    expect(await ac.deadLetters.discard({})).toBe(0)
    blocked.open()
    await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 1)
    expect(seen.calls).toHaveLength(2)
  })

  it('waits for an owner when there is none, and is done by the next', async () => {
    const { ac, mend, another } = await withLetters(1)
    mend()
    await ac.stop()
    const operator = another()
    expect(await operator.deadLetters.redrive({ owner: 'sub' })).toBe(1)
    const next = another()
    const again = recorder()
    next.subscribe({ id: 'sub', handle: again.handle })
    await next.start()
    await again.sees('event-1')
    await eventually(async () => (await next.deadLetters.count({ status: 'resolved' })) === 1)
  })

  it('tells the handler that the event comes from a letter', async () => {
    const { ac, emit } = await openSubscriptions()
    const redriven: boolean[] = []
    ac.subscribe({
      id: 'sub',
      handle: (_, context) => {
        redriven.push(context.redriven)
        if (redriven.length === 1) throw new GiveUp('at first')
      },
    })
    await ac.start()
    await emit('event')
    await eventually(async () => (await ac.deadLetters.redrive({})) === 1)
    await eventually(() => redriven.length === 2)
    expect(redriven).toEqual([false, true])
  })

  it('in a transactional subscription writes the effect once', async () => {
    const { ac, emit, sql } = await openSubscriptions()
    await sql.query('create table effects (event_id text)')
    let broken = true
    ac.subscribe({
      id: 'sub',
      transactional: true,
      handle: async ({ id }, { tx }) => {
        await tx.query('insert into effects values ($1)', [id])
        if (broken) throw new GiveUp('after the write')
      },
    })
    await ac.start()
    await emit('first', { key: 'k1' })
    await emit('second', { key: 'k1' })
    await eventually(async () => (await ac.deadLetters.list())[0]?.waiting === 1)
    expect((await sql.query('select from effects')).rowCount).toBe(0)
    broken = false
    await ac.deadLetters.redrive({})
    await eventually(async () => (await sql.query('select from effects')).rowCount === 2)
    await eventually(async () => (await sql.query('select from aftercommit.parked')).rowCount === 0)
    expect((await sql.query('select event_id from effects')).rows).toEqual([
      { event_id: 'first' },
      { event_id: 'second' },
    ])
  })
})

describe('discard', () => {
  it('gives the letter up, and what waits behind it follows in order', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder(({ id }) => {
      if (id === 'poison') throw new GiveUp('never')
    })
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    for (const id of ['poison', 'second', 'third']) await emit(id, { key: 'k1' })
    await eventually(async () => (await ac.deadLetters.list())[0]?.waiting === 2)
    expect(await ac.deadLetters.discard({}, { who: 'olga', reason: 'a test order' })).toBe(1)
    await seen.sees('third')
    await emit('fourth', { key: 'k1' })
    await seen.sees('fourth')
    expect(seen.ids).toEqual(['poison', 'second', 'third', 'fourth'])
    expect(await ac.deadLetters.count({ status: 'discarded' })).toBe(1)
  })
})
