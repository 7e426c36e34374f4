import { describe, expect, it } from 'vitest'
import { AftercommitEvent } from '../../src/index.ts'
import { fakeEventSource, memoryDeadLetters, testClock, testEvent } from '../../src/testing/index.ts'

describe('testEvent', () => {
  it('is an event with everything a handler may look at', () => {
    const event = testEvent('order.placed', { aggregate: { type: 'order', id: '1' }, payload: { total: 3 } })
    expect(event).toBeInstanceOf(AftercommitEvent)
    expect([event.type, event.key, event.payload, event.position]).toEqual([
      'order.placed',
      'order/1',
      { total: 3 },
      1n,
    ])
    expect(event.metadata).toMatchObject({ correlationId: event.id, depth: 0, schemaVersion: 1 })
  })

  it('has an id of its own unless told, and takes what the test is about', () => {
    expect(testEvent('a.b').id).not.toBe(testEvent('a.b').id)
    const event = testEvent('a.b', { id: 'evt-1', tenant: 'north', metadata: { userId: 'kim' } })
    expect([event.id, event.tenant, event.metadata.userId]).toEqual(['evt-1', 'north', 'kim'])
  })
})

describe('fakeEventSource', () => {
  it('gives what it was made with, then what is pushed, then ends', async () => {
    const source = fakeEventSource([testEvent('a.first')])
    const read = (async () => {
      const types: string[] = []
      for await (const event of source) types.push(event.type)
      return types
    })()
    source.push(testEvent('a.second'), testEvent('a.third'))
    source.end()
    expect(await read).toEqual(['a.first', 'a.second', 'a.third'])
  })

  it('lets a reader wait for what has not been pushed yet', async () => {
    const source = fakeEventSource<number>()
    const next = source.next()
    source.push(7)
    expect(await next).toEqual({ value: 7, done: false })
    expect(source.waiting).toBe(0)
  })

  it('is over for everybody when a reader leaves', async () => {
    const source = fakeEventSource<number>([1, 2, 3])
    for await (const n of source) if (n === 1) break
    expect(await source.next()).toEqual({ value: undefined, done: true })
  })
})

describe('memoryDeadLetters', () => {
  const letter = {
    kind: 'subscription',
    owner: 'mailer',
    key: 'order/1',
    event: testEvent('order.placed', { id: 'evt-1' }),
    error: { name: 'Error', message: 'no' },
    attempts: 2,
    sinceFirstMs: 5_000,
    parks: false,
  } as const

  it('keeps one letter for each owner and event, and counts attempts together', async () => {
    const letters = memoryDeadLetters()
    const first = letters.add(letter)
    letters.add({ ...letter, error: { name: 'Error', message: 'again' } })
    letters.add({ ...letter, owner: 'other' })
    expect([await letters.count(), await letters.count({ owner: 'mailer' })]).toEqual([2, 1])
    expect(await letters.show(first.id)).toMatchObject({ attempts: 4, error: { message: 'again' }, status: 'dead' })
  })

  it('marks what is dead, with who and why, and leaves the rest alone', async () => {
    const letters = memoryDeadLetters()
    const { id } = letters.add(letter)
    expect(await letters.redrive([id], { who: 'kim', reason: 'mended' })).toBe(1)
    expect(await letters.discard(id)).toBe(0)
    expect(await letters.show(id)).toMatchObject({ status: 'redriving', who: 'kim', reason: 'mended' })
  })

  it('tells times by its clock, and finds what nobody has touched for long', async () => {
    const clock = testClock()
    const letters = memoryDeadLetters({ clock })
    const { firstAttemptAt, lastAttemptAt } = letters.add(letter)
    expect(lastAttemptAt.getTime() - firstAttemptAt.getTime()).toBe(5_000)
    expect(await letters.count({ untouchedMs: 60_000 })).toBe(0)
    await clock.advance(60_001)
    expect(await letters.count({ untouchedMs: 60_000 })).toBe(1)
  })

  it('exports whole events as plain JSON', async () => {
    const letters = memoryDeadLetters()
    letters.add(letter)
    const exported: Record<string, unknown>[] = []
    for await (const one of letters.export({ owner: 'mailer' })) exported.push(one)
    expect(JSON.parse(JSON.stringify(exported))).toMatchObject([
      {
        id: '1',
        owner: 'mailer',
        attempts: 2,
        first_attempt_at: '2025-12-31T23:59:55.000Z',
        event: { id: 'evt-1', position: '1' },
      },
    ])
  })
})
