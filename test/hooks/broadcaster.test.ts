import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createBroadcaster, type Missed, toSystemEvent } from '../../src/hooks/index.ts'
import { testEvent } from '../../src/testing/index.ts'

describe('a broadcaster', () => {
  it('gives every subscriber every event, in order, and says how many there are', async () => {
    const broadcaster = createBroadcaster<number>()
    expect(broadcaster.send(0)).toBe(0)
    const readers = [broadcaster.subscribe(), broadcaster.subscribe(), broadcaster.subscribe()]
    expect(broadcaster.subscriberCount).toBe(3)
    expect(broadcaster.send(1)).toBe(3)
    expect(broadcaster.send(2)).toBe(3)
    for (const reader of readers) expect(await take(reader, 2)).toEqual([1, 2])
  })

  it('serves a subscriber that was waiting already', async () => {
    const broadcaster = createBroadcaster<number>()
    const reader = broadcaster.subscribe()
    const both = Promise.all([reader.next(), reader.next()])
    broadcaster.send(1)
    broadcaster.send(2)
    expect((await both).map(({ value }) => value)).toEqual([1, 2])
  })

  it('tells a slow subscriber how many it missed, goes on with the oldest kept, and tells nobody else', async () => {
    let told = 0
    const broadcaster = createBroadcaster<number>({ ring: 4, onMissed: (missed) => (told += missed) })
    const slow = broadcaster.subscribe()
    const quick = broadcaster.subscribe()
    const seen: unknown[] = []
    for (let n = 1; n <= 10; n++) {
      expect(broadcaster.send(n)).toBe(2)
      seen.push((await quick.next()).value)
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(await take(slow, 5)).toEqual([{ missed: 6 }, 7, 8, 9, 10])
    broadcaster.send(11)
    expect(await take(slow, 1)).toEqual([11])
    expect(told).toBe(6)
  })

  it('keeps 1024 events unless told', async () => {
    const broadcaster = createBroadcaster<number>()
    const slow = broadcaster.subscribe()
    for (let n = 0; n < 1_030; n++) broadcaster.send(n)
    expect(await take(slow, 2)).toEqual([{ missed: 6 }, 6])
  })

  it('forgets a subscriber that leaves its loop, and one whose signal fires', async () => {
    const broadcaster = createBroadcaster<number>()
    const ending = new AbortController()
    const waiting = broadcaster.subscribe({ signal: ending.signal }).next()
    const reader = broadcaster.subscribe()
    broadcaster.send(1)
    for await (const _ of reader) break
    expect(broadcaster.subscriberCount).toBe(1)
    expect((await waiting).value).toBe(1)
    ending.abort()
    expect(broadcaster.subscriberCount).toBe(0)
    expect(broadcaster.send(2)).toBe(0)
    expect(await reader.next()).toEqual({ value: undefined, done: true })
  })

  it('lets subscribers read to the end when it is closed, and takes nothing more', async () => {
    const broadcaster = createBroadcaster<number>()
    const reader = broadcaster.subscribe()
    const waiting = broadcaster.subscribe().next()
    broadcaster.send(1)
    broadcaster.close()
    expect(broadcaster.send(2)).toBe(0)
    const seen: unknown[] = []
    for await (const event of reader) seen.push(event)
    expect(seen).toEqual([1])
    expect((await waiting).value).toBe(1)
    expect(await broadcaster.subscribe().next()).toEqual({ value: undefined, done: true })
  })

  it('refuses a ring without room', () => {
    expect(() => createBroadcaster({ ring: 0 })).toThrow('ring')
  })
})

describe('a system event', () => {
  const changed = testEvent('order.updated', {
    aggregate: { type: 'order', id: '42' },
    version: 3,
    position: 7n,
    payload: { total: 90 },
    previous: { total: 80 },
  })

  it('is a change of a resource, with its image before', () => {
    const event = toSystemEvent(changed)
    expect(event).toMatchObject({
      about: 'resource',
      type: 'order.updated',
      kind: 'updated',
      entity: 'order',
      id: '42',
    })
    expect(event).toMatchObject({ version: 3, position: 7n, eventId: changed.id, occurredAt: changed.occurredAt })
    expect(event.about === 'resource' && [event.resource, event.previous]).toEqual([{ total: 90 }, { total: 80 }])
  })

  it('is something that happened to a session, by whoever it was written', () => {
    const payload = {
      user_id: 'ada',
      session_id: 's1',
      token_id: 't1',
      client_id: 'web',
      ip: '10.0.0.1',
      reason: 'lost',
    }
    const event = toSystemEvent(testEvent('auth.token_revoked', { payload }))
    expect(event.about === 'auth' && [event.type, event.userId, event.sessionId, event.tokenId]).toEqual([
      'token_revoked',
      'ada',
      's1',
      't1',
    ])
    expect(event.about === 'auth' && [event.clientId, event.ip, event.reason]).toEqual(['web', '10.0.0.1', 'lost'])
    const bare = toSystemEvent(testEvent('auth.login', { payload: null }))
    expect(bare.about === 'auth' && [bare.type, bare.userId, bare.ip]).toEqual(['login', null, null])
  })

  it('does not guess at an auth event that nobody has given a meaning', () => {
    expect(toSystemEvent(testEvent('auth.fingerprinted'))).toMatchObject({ about: 'resource', kind: 'custom' })
  })

  it('prints neither the resource nor the user', () => {
    const secret = toSystemEvent(testEvent('auth.login', { payload: { user_id: 'ada', ip: '10.0.0.1' } }))
    for (const event of [secret, toSystemEvent(changed)]) {
      for (const text of [inspect(event), JSON.stringify(event)]) {
        expect(text).toContain(event.eventId)
        expect(text).not.toMatch(/ada|10\.0\.0\.1|total/)
      }
    }
  })
})

async function take<T>(reader: AsyncIterator<T | Missed>, count: number): Promise<unknown[]> {
  const seen: unknown[] = []
  while (seen.length < count) seen.push((await reader.next()).value)
  return seen
}
