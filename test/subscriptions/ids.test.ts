import { describe, expect, it } from 'vitest'
import { subscriptionIdOf } from '../../src/adapters/redis/address.ts'
import { HookCall } from '../../src/hooks/hook-call.ts'
import { createAftercommit, memorySink } from '../../src/index.ts'
import { CallContext } from '../../src/subscriptions/index.ts'
import { testEvent } from '../../src/testing/index.ts'

describe('the id of a subscription', () => {
  it.each(['observers', 'observers:billing', 'workflow:order', 'hook:audit', 'redis:events'])(
    'cannot be %s, which aftercommit uses itself',
    (id) => {
      const ac = createAftercommit({ database: 'postgres://nowhere' })
      const refused = expect.objectContaining({
        code: 'BAD_OPTION',
        message: expect.stringMatching(`^Subscription "${id}" has an id that aftercommit uses for .* not registered`),
      })
      expect(() => ac.subscribe({ id, handle() {} })).toThrow(refused)
      expect(() => ac.project({ id, apply: () => 1 })).toThrow(refused)
      expect(() => ac.relay({ id, to: memorySink() })).toThrow(refused)
    },
  )

  it('may begin like one of those', () => {
    const ac = createAftercommit({ database: 'postgres://nowhere' })
    for (const id of ['observers-mail', 'workflows', 'hooked:audit']) {
      expect(ac.subscribe({ id, handle() {} }).id).toBe(id)
    }
  })

  it('is another one for each channel of Redis', () => {
    const channels = ['orders:eu', 'orders eu', 'orders_eu', 'x'.repeat(200), `${'x'.repeat(199)}y`]
    const ids = channels.map(subscriptionIdOf)
    expect(new Set(ids).size).toBe(channels.length)
    expect(ids[0]).toBe('redis:orders:eu')
    for (const id of ids) expect(id).toMatch(/^[\w:.-]{1,200}$/)
  })
})

describe('idempotency keys', () => {
  const event = (id: string) => testEvent('order.placed', { id })

  it('of two subscriptions differ, whatever the ids of their events contain', () => {
    const key = (subscription: string, id: string) =>
      new CallContext(subscription, event(id), 1, false, undefined).idempotencyKey
    expect(key('mail', 'eu:1')).not.toBe(key('mail:eu', '1'))
  })

  it('of two hooks differ, whatever the ids of their events contain', () => {
    const key = (hook: string, id: string) => new HookCall(hook, event(id), 1, 1).idempotencyKey
    expect(key('mail', 'eu:1')).not.toBe(key('mail:eu', '1'))
  })
})
