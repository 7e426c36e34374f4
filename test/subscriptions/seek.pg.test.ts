/** Moving a checkpoint on purpose: what is shown first is what happens, and letters stay. */
import { describe, expect, it } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { dropHistory } from './support/dropped-history.ts'
import { numbered, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe('seek', () => {
  it('back: the preview counts exactly what is then handled again', async () => {
    const { ac, emitMany, emit } = await openSubscriptions()
    await emitMany(20)
    for (let n = 0; n < 5; n++) await emit(`door-${n}`, { type: 'door.opened' })
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', on: ['lamp.*'], handle: seen.handle })
    await ac.start()
    await seen.sees('event-20')
    await eventually(async () => (await handle.status()).position === 25n)
    const preview = await handle.previewSeek(12n)
    expect(preview).toEqual({ from: 25n, to: 12n, events: 8, direction: 'back' })
    expect((await handle.status()).position).toBe(25n)
    expect(await handle.seek(12n, { who: 'me', reason: 'a bug in the handler' })).toEqual(preview)
    await seen.sees('event-20', 2)
    expect(seen.ids.slice(20)).toEqual(numbered(20).slice(12))
  })

  it('forward: what lies between is never handled, on request only', async () => {
    const { ac, emitMany, emit } = await openSubscriptions()
    await emitMany(20)
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await seen.sees('event-20')
    await handle.pause()
    await emitMany(10, { prefix: 'skipped-' })
    await eventually(async () => (await handle.previewSeek('head')).events === 10)
    expect(await handle.fastForward({ who: 'me' })).toMatchObject({ events: 10, direction: 'forward' })
    await handle.resume()
    await emit('after')
    await seen.sees('after')
    expect(seen.ids).toEqual([...numbered(20), 'after'])
  })

  it('counts and handles only the own tenant', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', tenant: 'acme', handle: seen.handle })
    await ac.start()
    for (const tenant of ['acme', 'other', 'acme']) await emit(`of-${tenant}-${Math.random()}`, { tenant })
    await eventually(async () => (await handle.status()).position === 3n)
    expect(await handle.previewSeek('start')).toMatchObject({ events: 2 })
  })

  it('to a time begins with what was recorded then', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('before')
    // A Date holds milliseconds, and what was recorded in the same one must lie before it.
    const { rows } = await sql.query(`select clock_timestamp() + interval '1 ms' as now`)
    await sql.query('select pg_sleep(0.01)')
    await emit('after')
    await seen.sees('after')
    await eventually(async () => (await handle.status()).position === 2n)
    await handle.seek(rows[0].now as Date)
    await seen.sees('after', 2)
    expect(seen.ids).toEqual(['before', 'after', 'after'])
  })

  it('takes a new term, so that the owner begins again there and what it had under way counts for nothing', async () => {
    const { ac, emitMany, another } = await openSubscriptions()
    await emitMany(5)
    const seen = recorder()
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await seen.sees('event-5')
    const operator = another().subscriptions.get('sub')
    await eventually(async () => (await operator.status()).position === 5n)
    const { term } = await operator.status()
    await operator.seek('start')
    await seen.sees('event-5', 2)
    await eventually(async () => (await operator.status()).position === 5n)
    expect((await operator.status()).term).toBeGreaterThan(term + 1n)
    expect(seen.ids).toEqual([...numbered(5), ...numbered(5)])
  })

  it('keeps dead letters, and is written down with who and why', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    const seen = recorder(() => {
      throw new GiveUp('never')
    })
    const handle = ac.subscribe({ id: 'sub', onFailure: 'skip', handle: seen.handle })
    await ac.start()
    await emit('event')
    await eventually(async () => (await ac.deadLetters.count()) === 1)
    await handle.seek('head', { who: 'olga', reason: 'not needed any more' })
    expect(await ac.deadLetters.count()).toBe(1)
    const { rows } = await sql.query('select who, what, target, reason from aftercommit.audit')
    expect(rows).toEqual([{ who: 'olga', what: 'subscription.seek', target: 'sub', reason: 'not needed any more' }])
  })

  it('frees a subscription whose history was dropped', async () => {
    const { ac, emitMany, another, sql } = await openSubscriptions()
    await emitMany(10)
    ac.subscribe({ id: 'sub', handle: () => {} })
    await ac.drain()
    await ac.stop()
    await emitMany(10, { prefix: 'lost-' })
    await emitMany(5, { prefix: 'kept-' })
    await dropHistory(sql, 21n)
    const next = another()
    const seen = recorder()
    const handle = next.subscribe({ id: 'sub', handle: seen.handle })
    await next.start()
    await eventually(async () => (await handle.status()).status === 'stopped')
    expect((await handle.status()).reason).toMatch(/history lost: events 11 to 20/)
    expect(seen.ids).toEqual([])
    await handle.seek('start')
    await seen.sees('kept-5')
    expect(seen.ids).toEqual(numbered(5, 'kept-'))
  })
})

describe('remove', () => {
  it('forgets a subscription with its checkpoint and letters; the next registration begins anew', async () => {
    const { ac, emit, another, sql } = await openSubscriptions()
    const handle = ac.subscribe({
      id: 'sub',
      handle: () => {
        throw new GiveUp('never')
      },
    })
    await ac.start()
    await emit('event', { key: 'k1' })
    await emit('behind', { key: 'k1' })
    await eventually(async () => (await ac.deadLetters.list())[0]?.waiting === 1)
    await handle.remove({ who: 'me' })
    expect(await ac.subscriptions.list()).toEqual([])
    expect(await ac.deadLetters.count()).toBe(0)
    expect((await sql.query('select from aftercommit.parked')).rowCount).toBe(0)
    const next = another()
    const seen = recorder()
    next.subscribe({ id: 'sub', handle: seen.handle })
    await next.drain()
    expect(seen.ids).toEqual(['event', 'behind'])
  })
})
