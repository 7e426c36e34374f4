/** What becomes of an event whose handler fails: tries, words, dead letters, and what the rest of the log does meanwhile. */
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, runWithCause, type Undecodable } from '../../src/index.ts'
import { GiveUp, RetryAfter } from '../../src/subscriptions/index.ts'
import { instance, openLog } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { gate, openSubscriptions, QUICK, recorder } from './support/open-subscriptions.ts'

describe('an event whose handler always fails', () => {
  it('with `skip`: four attempts, a dead letter, and the next events of the same key arrive', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder(({ id }) => {
      if (id === 'poison') throw new Error('cannot be handled')
    })
    ac.subscribe({ id: 'skips', onFailure: 'skip', retry: QUICK, handle: seen.handle })
    await emit('before', { key: 'k1' })
    await emit('poison', { key: 'k1' })
    await emit('after', { key: 'k1' })
    await emit('other', { key: 'k2' })
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(seen.calls.filter(({ id }) => id === 'poison').map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
    expect(seen.ids.filter((id) => id !== 'poison').sort()).toEqual(['after', 'before', 'other'])
    expect(seen.ids.indexOf('after')).toBeGreaterThan(seen.ids.lastIndexOf('poison'))
    const [letter] = await ac.deadLetters.list()
    expect(letter).toMatchObject({ kind: 'subscription', owner: 'skips', attempts: 4, status: 'dead', waiting: 0 })
    expect(letter!.error).toEqual({ name: 'Error', message: 'cannot be handled' })
  })

  it('with `park`: events of all other keys arrive, those of its key wait and follow in order after redrive', async () => {
    const { ac, emit } = await openSubscriptions()
    let broken = true
    const seen = recorder(({ id }) => {
      if (id === 'poison' && broken) throw new Error('cannot be handled')
    })
    ac.subscribe({ id: 'parks', retry: QUICK, handle: seen.handle })
    await ac.start()
    await emit('poison', { key: 'k1' })
    await emit('behind-1', { key: 'k1' })
    await emit('other', { key: 'k2' })
    await emit('behind-2', { key: 'k1' })
    await emit('last', { key: 'k3' })
    await seen.sees('last')
    await eventually(async () => (await ac.deadLetters.list())[0]?.waiting === 2)
    expect(seen.ids.filter((id) => id !== 'poison')).toEqual(['other', 'last'])
    broken = false
    expect(await ac.deadLetters.redrive({ owner: 'parks' }, { who: 'me' })).toBe(1)
    await seen.sees('behind-2')
    expect(seen.ids.slice(-3)).toEqual(['poison', 'behind-1', 'behind-2'])
    await emit('free', { key: 'k1' })
    await seen.sees('free')
    await eventually(async () => (await ac.deadLetters.list())[0]?.status === 'resolved')
  })

  it('with `stop`: everything waits, in strict order, until somebody resumes it', async () => {
    const { ac, emit } = await openSubscriptions()
    let broken = true
    const seen = recorder(({ id }) => {
      if (id === 'poison' && broken) throw new Error('cannot be handled')
    })
    const handle = ac.subscribe({ id: 'stops', onFailure: 'stop', retry: QUICK, handle: seen.handle })
    await ac.start()
    await emit('poison', { key: 'k1' })
    await emit('other', { key: 'k2' })
    await eventually(async () => (await handle.status()).status === 'stopped')
    expect(seen.ids).toEqual(['poison', 'poison', 'poison', 'poison'])
    expect((await handle.status()).reason).toMatch(/poison.*cannot be handled/)
    expect(await ac.deadLetters.count()).toBe(0)
    broken = false
    await handle.resume()
    await seen.sees('other')
    expect(seen.ids.slice(4)).toEqual(['poison', 'other'])
  })
})

describe('between tries', () => {
  it('a key that backs off holds back its own events and no others', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder(({ id }) => {
      if (id === 'slow' && !seen.ids.includes('c')) throw new RetryAfter('10ms')
    })
    ac.subscribe({ id: 'sub', retry: { maxAttempts: 10_000 }, handle: seen.handle })
    await ac.start()
    await emit('slow', { key: 'k1' })
    await emit('behind', { key: 'k1' })
    for (const id of ['a', 'b', 'c']) await emit(id, { key: id })
    await seen.sees('behind')
    expect(seen.ids.filter((id) => id !== 'slow')).toEqual(['a', 'b', 'c', 'behind'])
  })

  it('a process that is stopped does not wait for the next try, and the next owner makes it', async () => {
    const { ac, emit, another } = await openSubscriptions()
    const seen = recorder(() => {
      throw new RetryAfter('1h')
    })
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('later', { key: 'k1' })
    await emit('done', { key: 'k2' })
    await seen.sees('done')
    await ac.stop()
    const next = another()
    const again = recorder()
    next.subscribe({ id: 'sub', handle: again.handle })
    await next.start()
    await again.sees('done')
    expect(again.ids).toEqual(['later', 'done'])
  })
})

describe('the words of a handler', () => {
  it('GiveUp is a dead letter at the first try', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder(() => {
      throw new GiveUp('the customer is gone')
    })
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await emit('event')
    await ac.drain()
    expect(seen.calls).toHaveLength(1)
    expect((await ac.deadLetters.list())[0]).toMatchObject({ attempts: 1, error: { message: 'the customer is gone' } })
  })

  it('what is thrown without being an error is a failure like any other', async () => {
    const { ac, emit } = await openSubscriptions()
    for (const [id, thrown] of [
      ['nothing', undefined],
      ['text', 'just text'],
      ['bare', Object.create(null)],
    ] as const) {
      ac.subscribe({
        id,
        retry: { maxAttempts: 1 },
        handle: () => {
          throw thrown
        },
      })
    }
    await emit('event')
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(await ac.deadLetters.count({ status: 'dead' })).toBe(3)
  })

  it('conflicts of the database are tried again and never count as attempts', async () => {
    const { ac, emit } = await openSubscriptions()
    let conflicts = 0
    const seen = recorder(() => {
      if (conflicts++ < 6) throw Object.assign(new Error('could not serialize access'), { code: '40001' })
    })
    ac.subscribe({ id: 'sub', retry: { maxAttempts: 1 }, handle: seen.handle })
    await emit('event')
    await ac.drain()
    expect(seen.calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1, 1, 1])
    expect(await ac.deadLetters.count()).toBe(0)
  })
})

describe('a handler that takes too long', () => {
  it('is told by its signal, and its event is tried again', async () => {
    const { ac, emit } = await openSubscriptions()
    const told: string[] = []
    ac.subscribe({
      id: 'sub',
      timeout: '100ms',
      retry: QUICK,
      handle: async (_, { signal, attempt }) => {
        if (attempt > 1) return
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    ac.subscribe({
      id: 'watcher',
      timeout: '100ms',
      retry: { maxAttempts: 1 },
      handle: async (_, { signal }) => {
        signal.addEventListener('abort', () => told.push((signal.reason as { code: string }).code))
        await new Promise(() => {})
      },
    })
    await emit('event')
    await ac.start()
    await eventually(async () => (await ac.deadLetters.count({ owner: 'watcher' })) === 1)
    expect(told).toEqual(['TIMED_OUT'])
    await eventually(async () => (await ac.subscriptions.get('sub').status()).position === 1n)
    expect(await ac.deadLetters.count({ owner: 'sub' })).toBe(0)
  })

  it('is not run beside itself: the next try begins when the old call has ended', async () => {
    const { ac, emit } = await openSubscriptions()
    const old = gate()
    let running = 0
    let most = 0
    const seen = recorder(async ({ attempt }) => {
      most = Math.max(most, ++running)
      if (attempt === 1) await old.passed
      running--
    })
    ac.subscribe({ id: 'sub', timeout: '100ms', retry: QUICK, handle: seen.handle })
    await ac.start()
    await emit('deaf', { key: 'k1' })
    await emit('other', { key: 'k2' })
    await seen.sees('other')
    expect(seen.ids).toEqual(['deaf', 'other'])
    old.open()
    await seen.sees('deaf', 2)
    expect(most).toBe(2) // with the other key, never with itself
    expect(seen.calls.filter(({ id }) => id === 'deaf').map(({ attempt }) => attempt)).toEqual([1, 2])
  })
})

/** Where a subscription authorises, an event must name its user. */
const asUser = <T>(emit: () => Promise<T>) => runWithCause({ correlationId: 'test', depth: 0, userId: 'ada' }, emit)

describe('events that must not reach the handler', () => {
  it('an unauthorised one is a dead letter at once, and its key goes on', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder()
    ac.subscribe({ id: 'sub', authorize: (event) => event.id !== 'forbidden', handle: seen.handle })
    await asUser(() => emit('forbidden', { key: 'k1' }))
    await asUser(() => emit('allowed', { key: 'k1' }))
    await ac.drain()
    expect(seen.ids).toEqual(['allowed'])
    expect((await ac.deadLetters.list())[0]).toMatchObject({ attempts: 1, error: { code: 'UNAUTHORIZED' } })
  })

  it('many unauthorised ones in a row do not make the subscription fail', async () => {
    const { ac, emit, emitMany } = await openSubscriptions()
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', authorize: (event) => event.id === 'allowed', handle: seen.handle })
    await emitMany(20)
    await asUser(() => emit('allowed'))
    await ac.drain()
    expect(seen.ids).toEqual(['allowed'])
    expect(await handle.status()).toMatchObject({ status: 'active', deadLetters: 20 })
  })

  it('one whose stored payload cannot be read is a dead letter, and stays one when it is redriven', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    await sql.query(
      `insert into aftercommit.events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
       values ('deep', 'lamp.lit', 'lamp', 'deep', (repeat('[', 1100) || repeat(']', 1100))::jsonb, '{}', now())`,
    )
    const seen = recorder()
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('after')
    await seen.sees('after')
    await eventually(async () => (await ac.deadLetters.list({ eventId: 'deep' }))[0]?.error.code === 'UNDECODABLE')
    const before = (await ac.deadLetters.list({ eventId: 'deep' }))[0]!
    await ac.deadLetters.redrive(before.id)
    await eventually(async () => {
      const [letter] = await ac.deadLetters.list({ eventId: 'deep' })
      return letter?.status === 'dead' && letter.attempts > before.attempts
    })
    expect(seen.ids).toEqual(['after'])
  })

  it('one whose stored payload cannot be read keeps its text in the letter, and printing the letter shows none of it', async () => {
    const { ac, sql } = await openSubscriptions()
    await sql.query(
      `insert into aftercommit.events (id, type, payload, metadata, occurred_at)
       values ('deep', 'lamp.lit', (repeat('[', 1100) || '"canary"' || repeat(']', 1100))::jsonb, '{}', now())`,
    )
    ac.subscribe({ id: 'sub', handle: () => {} })
    await ac.drain()
    const [letter] = await ac.deadLetters.list({ eventId: 'deep' })
    const payload = letter!.event.payload as Undecodable
    expect(payload.raw).toBe(`${'['.repeat(1_100)}"canary"${']'.repeat(1_100)}`)
    expect(inspect(letter, { depth: null, showHidden: true })).not.toContain('canary')
  })

  it('one of a newer schema version makes the process give up the lease, and newer code handles it', async () => {
    const older = defineEvents({ 'lamp.lit': z.object({}) })
    const newer = defineEvents({
      'lamp.lit': { schema: z.object({ watts: z.number() }), version: 2, upcast: { 1: () => ({ watts: 0 }) } },
    })
    const { ac, url } = await openLog({ events: older })
    const oldSeen: string[] = []
    const handle = ac.subscribe({ id: 'sub', handle: (event) => void oldSeen.push(event.id) })
    await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'v1', payload: {} }))
    await ac.start()
    await eventually(() => oldSeen.length === 1)
    const next = instance({ database: url, events: newer })
    await next.transaction((tx) => tx.emit('lamp.lit', { id: 'v2', payload: { watts: 5 } }))
    await eventually(async () => /newer code/.test((await handle.status()).reason ?? ''))
    expect(await ac.deadLetters.count()).toBe(0)
    const newSeen: string[] = []
    next.subscribe({ id: 'sub', handle: (event) => void newSeen.push(event.id) })
    await next.start()
    await eventually(() => newSeen.length === 1)
    expect([...oldSeen, ...newSeen]).toEqual(['v1', 'v2'])
    await eventually(async () => (await handle.status()).reason === null)
  })

  it.each<[string, () => string, string]>([
    [
      'throws',
      () => {
        throw new Error('no key')
      },
      'no key',
    ],
    ['returns a promise', (async () => 'key') as never, '`key` of subscription "sub" returned a promise'],
    ['returns undefined', (() => undefined) as never, '`key` of subscription "sub" returned undefined'],
  ])('an event whose key function %s becomes a dead letter, and the rest proceeds', async (_, keyless, message) => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder()
    ac.subscribe({
      id: 'sub',
      key: (event) => (event.id === 'keyless' ? keyless() : 'key'),
      retry: QUICK,
      handle: seen.handle,
    })
    await emit('keyless')
    await emit('after')
    await ac.start()
    await seen.sees('after')
    await eventually(async () => (await ac.deadLetters.count({ eventId: 'keyless' })) === 1)
    expect((await ac.deadLetters.list())[0]?.error.message).toContain(message)
  })
})
