/** What is told while subscriptions run: lines and numbers that operators build on, and nothing of what events contain. */
import { describe, expect, it } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { parseExposition, recordingLogger } from '../runtime/support.ts'
import { eventually } from '../support/eventually.ts'
import { gate, openSubscriptions, QUICK, recorder } from './support/open-subscriptions.ts'

const CANARY = 'canary-7c1e'

describe('lines', () => {
  it('tell the life of a subscription, from its registration to its release', async () => {
    const logger = recordingLogger()
    const { ac, emitMany, another } = await openSubscriptions({ logger })
    await emitMany(20)
    const seen = recorder()
    ac.subscribe({ id: 'sub', from: 5n, handle: seen.handle })
    await ac.start()
    await seen.sees('event-20')
    const find = (message: RegExp) => logger.lines.find((line) => message.test(line.message) && of(line) === 'sub')
    const of = (line: { fields: Record<string, unknown> }) => line.fields.subscription
    await eventually(() => find(/catch-up completed/))
    expect(find(/subscription registered/)).toMatchObject({ level: 'info', fields: { position: '5' } })
    expect(find(/lease acquired/)).toMatchObject({ level: 'info', fields: { position: '5', term: '1' } })
    expect(find(/catch-up started/)).toMatchObject({ level: 'info', fields: { behind: '15' } })
    expect(find(/catch-up completed/)).toMatchObject({ level: 'info', fields: { events: 15 } })
    expect(logger.lines.find(({ message }) => message === 'tailer started')).toMatchObject({ level: 'info' })
    await eventually(() => find(/^checkpoint$/))
    expect(find(/^checkpoint$/)).toMatchObject({ level: 'debug' })

    const otherLogger = recordingLogger()
    const other = another({ logger: otherLogger })
    const again = recorder()
    other.subscribe({ id: 'sub', handle: again.handle })
    await other.start()
    const heldElsewhere = () => otherLogger.lines.filter(({ message }) => /lease held elsewhere/.test(message))
    await eventually(() => heldElsewhere().length > 0)
    expect(heldElsewhere()[0]).toMatchObject({ level: 'info' })
    await ac.stop()
    expect(find(/lease released/)).toMatchObject({ level: 'info' })
    await other.transaction((tx) => tx.emit('lamp.lit', { id: 'last', payload: {} }))
    await again.sees('last')
    // Said when it changes, not every second.
    expect(heldElsewhere()).toHaveLength(1)
  })

  it('tell every try with its delay, and the letter at the end', async () => {
    const logger = recordingLogger()
    const { ac, emit } = await openSubscriptions({ logger })
    ac.subscribe({
      id: 'sub',
      retry: { maxAttempts: 2, initialDelay: '10ms' },
      handle: () => {
        throw new Error('no answer')
      },
    })
    await emit('event')
    await ac.drain()
    const retry = logger.lines.find(({ level, fields }) => level === 'warn' && fields.event_id === 'event')
    expect(retry!.fields).toMatchObject({ subscription: 'sub', event_type: 'lamp.lit', attempt: 1 })
    expect(Number(retry!.fields.delay_ms)).toBeGreaterThan(0)
    const letter = logger.lines.find(({ level, message }) => level === 'error' && /dead letter/.test(message))
    expect(letter!.fields).toMatchObject({ subscription: 'sub', event_id: 'event', attempt: 2 })
  })

  it('follow one event from its emit to the end of its handler, by the ids it goes by', async () => {
    const logger = recordingLogger()
    const { ac } = await openSubscriptions({ logger })
    ac.subscribe({ id: 'sub', handle: () => {} })
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    await ac.transaction((tx) =>
      tx.emit('lamp.lit', {
        id: 'event',
        payload: {},
        metadata: { correlationId: 'corr-1', traceparent: `00-${traceId}-b7ad6b7169203331-01`, userId: 'user-77' },
      }),
    )
    await ac.drain()
    const told = logger.lines.filter(({ fields }) => fields.event_id === 'event')
    expect(told.map(({ level, message }) => `${level} ${message}`)).toEqual([
      'debug emitted',
      'debug processing event',
      'debug handled event',
    ])
    for (const { fields } of told) {
      expect(fields).toMatchObject({ event_type: 'lamp.lit', correlation_id: 'corr-1', trace_id: traceId })
    }
    for (const { fields } of told.slice(1)) expect(fields.subscription).toBe('sub')
    expect(JSON.stringify(logger.lines)).not.toContain('user-77')
  })

  it('hold nothing of a payload, whatever goes wrong', async () => {
    const logger = recordingLogger()
    const { ac, emit, sql } = await openSubscriptions({ logger, log: { maxPayload: '20kB' } })
    await sql.query('create table cards (number text primary key)')
    const failures: Record<string, () => unknown> = {
      ok: () => {},
      throws: () => {
        throw new Error('no answer')
      },
      gives: () => {
        throw new GiveUp('never')
      },
    }
    for (const [id, handle] of Object.entries(failures)) ac.subscribe({ id, retry: QUICK, handle })
    ac.subscribe({
      id: 'in-a-transaction',
      transactional: true,
      retry: QUICK,
      handle: async (event, { tx }) => {
        const { card } = event.payload as { card: string }
        await tx.query('insert into cards values ($1), ($1)', [card])
      },
    })
    ac.subscribe({ id: 'unauthorised', authorize: () => false, handle: () => {} })
    ac.subscribe({ id: 'slow', timeout: '50ms', retry: { maxAttempts: 1 }, handle: () => new Promise(() => {}) })
    ac.subscribe({ id: 'stops', onFailure: 'stop', retry: { maxAttempts: 1 }, handle: failures.throws! })
    await emit('event', { key: 'k1', payload: { card: CANARY } })
    await ac.start()
    await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 5)
    await eventually(async () => (await ac.subscriptions.get('stops').status()).status === 'stopped')
    await ac.deadLetters.redrive({ owner: 'gives' })
    await ac.deadLetters.discard({ owner: 'throws' })
    await ac.stop()
    expect(logger.lines.length).toBeGreaterThan(20)
    expect(JSON.stringify(logger.lines)).not.toContain(CANARY)
  })

  it('of one failure that repeats are few, and tell how many they stand for', async () => {
    const logger = recordingLogger()
    const { ac, emitMany } = await openSubscriptions({ logger })
    ac.subscribe({
      id: 'sub',
      onFailure: 'skip',
      failingAfter: 1_000,
      retry: { maxAttempts: 2, initialDelay: '1ms' },
      handle: () => {
        throw new Error('the mail server refuses')
      },
    })
    await emitMany(300)
    await ac.drain()
    expect(await ac.deadLetters.count()).toBe(300)
    const repeated = logger.lines.filter(({ level }) => level === 'warn' || level === 'error')
    expect(repeated.length).toBeGreaterThan(0)
    expect(repeated.length).toBeLessThan(30)
    // Two kinds of failure are told apart: a new one is said at once.
    expect(new Set(repeated.map(({ level }) => level))).toEqual(new Set(['warn', 'error']))
  })
})

describe('numbers', () => {
  it('of a subscription are what happened', async () => {
    const { ac, emit, emitMany } = await openSubscriptions()
    await emitMany(10)
    const blocked = gate()
    const inside = gate()
    ac.subscribe({
      id: 'sub',
      retry: { maxAttempts: 3, initialDelay: '1ms' },
      handle: async ({ id }) => {
        if (id === 'poison') throw new Error('never')
        if (id !== 'last') return
        inside.open()
        await blocked.passed
      },
    })
    const sub = { subscription: 'sub' }
    await ac.start()
    // What comes in the page behind the last one it was behind by would count as caught up on, too.
    await eventually(
      async () => parseExposition(await ac.metrics()).value('aftercommit_catchup_events_total', sub) === 10,
    )
    for (const id of ['poison', 'behind-1', 'behind-2']) await emit(id, { key: 'k1' })
    await emit('free', { key: 'k2' })
    await eventually(async () => (await ac.deadLetters.list())[0]?.waiting === 2)
    await emit('last', { key: 'k3' })
    await emit('waiting', { key: 'k3' })
    await inside.passed
    await eventually(async () => {
      const { value } = parseExposition(await ac.metrics())
      expect(value('aftercommit_checkpoint_lag', sub)).toBe(2)
      return true
    })
    const { value } = parseExposition(await ac.metrics())
    expect(value('aftercommit_events_emitted_total')).toBe(6)
    expect(value('aftercommit_catchup_events_total', sub)).toBe(10)
    expect(value('aftercommit_catchup_duration_seconds_count', sub)).toBe(1)
    expect(value('aftercommit_retry_attempts_total', sub)).toBe(2)
    expect(value('aftercommit_dlq_size', { kind: 'subscription', owner: 'sub' })).toBe(1)
    expect(value('aftercommit_parked_keys', sub)).toBe(1)
    expect(value('aftercommit_checkpoint_age_seconds', sub)).toBeGreaterThan(0)
    expect(value('aftercommit_frontier_age_seconds')).toBe(0)
    blocked.open()
    await eventually(async () => parseExposition(await ac.metrics()).value('aftercommit_checkpoint_lag', sub) === 0)
    expect(parseExposition(await ac.metrics()).value('aftercommit_checkpoint_age_seconds', sub)).toBe(0)
  })

  it('count events of batches too', async () => {
    const { ac, emitMany } = await openSubscriptions()
    await emitMany(50)
    ac.subscribe({ id: 'sub', handleBatch: () => {} })
    await ac.drain()
    const { value } = parseExposition(await ac.metrics())
    expect(value('aftercommit_handled_total', { subscription: 'sub', outcome: 'ok' })).toBe(50)
  })
})

describe('health', () => {
  it('says why when a subscription is failing, and that all is well afterwards', async () => {
    const { ac, emitMany } = await openSubscriptions()
    let broken = true
    const seen = recorder(() => {
      if (broken) throw new Error('a bad deploy')
    })
    const handle = ac.subscribe({ id: 'sub', retry: { maxAttempts: 1, maxDelay: '20ms' }, handle: seen.handle })
    await ac.start()
    await emitMany(20, { keys: 20 })
    await eventually(async () => (await handle.status()).status === 'failing')
    expect((await handle.status()).reason).toMatch(/5 keys in a row/)
    broken = false
    await eventually(async () => (await handle.status()).status === 'active')
    expect(await handle.status()).toMatchObject({ reason: null })
  })
})
