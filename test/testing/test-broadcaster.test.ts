import { describe, expect, it } from 'vitest'
import { testBroadcaster } from '../../src/testing/index.ts'

describe('the broadcaster for tests', () => {
  it('sends what the log would have sent, and remembers it', async () => {
    const broadcaster = testBroadcaster()
    expect(broadcaster.sendEvent('order.created', { aggregate: { type: 'order', id: '1' } })).toBe(0)
    const reader = broadcaster.subscribe()
    expect(broadcaster.sendEvent('order.deleted', { previous: { total: 90 } })).toBe(1)
    expect((await reader.next()).value).toMatchObject({ about: 'resource', kind: 'deleted', position: 2n })
    broadcaster.sendEvent('auth.login', { payload: { user_id: 'ada' } })
    expect(broadcaster.sent.map(({ about, type }) => [about, type])).toEqual([
      ['resource', 'order.created'],
      ['resource', 'order.deleted'],
      ['auth', 'login'],
    ])
  })

  it('tells a slow subscriber what it missed, like the real one', async () => {
    const broadcaster = testBroadcaster({ ring: 2 })
    const reader = broadcaster.subscribe()
    for (const type of ['lamp.lit', 'lamp.moved', 'lamp.broken']) broadcaster.sendEvent(type)
    expect((await reader.next()).value).toEqual({ missed: 1 })
    broadcaster.close()
    expect(broadcaster.subscriberCount).toBe(0)
  })
})
