/** What the compiler knows of hooks. Nothing here connects. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { createAftercommit } from '../../src/aftercommit.ts'
import { type AftercommitEvent, defineEvents } from '../../src/events/index.ts'
import { auditHook, eventedStorage, reloadHook, revocationHook } from '../../src/hooks/index.ts'

const events = defineEvents({
  'order.placed': z.object({ total: z.number() }),
  'user.created': z.object({ email: z.string() }),
})
const ac = createAftercommit({ events, database: 'postgres://nowhere/nothing' })

describe('the types of hooks', () => {
  it('give a handler the payloads of the events it chose', () => {
    ac.hooks.add({
      name: 'orders',
      types: ['order.*'],
      scope: 'instance',
      handle(event) {
        expectTypeOf(event.type).toEqualTypeOf<'order.placed'>()
        expectTypeOf(event.payload).toEqualTypeOf<{ total: number }>()
      },
    })
    ac.hooks.add({
      name: 'auth',
      types: ['auth.*'],
      scope: 'cluster',
      handle: (event) => expectTypeOf(event).toEqualTypeOf<AftercommitEvent>(),
    })
    expect(ac.hooks.count()).toBe(2)
  })

  it('take the built-in hooks whatever the catalogue', () => {
    const added = [
      ac.hooks.add(reloadHook({ name: 'policies', reload() {} })),
      ac.hooks.add(revocationHook()),
      ac.hooks.add(auditHook({ store: { write() {} } })),
    ]
    expect(added).toEqual([true, true, true])
  })

  it('keep the type of a repository that is wrapped, and take `emit` as it is', () => {
    const repository = {
      get: async (id: string) => ({ id }),
      create: async (order: { id: string }) => order,
      update: async (id: string, _: { total?: number }) => ({ id }),
      delete: async (_: string) => true,
      transaction: async <T>(fn: (within: unknown, tx: unknown) => Promise<T>) => fn(null, null),
      recent: (limit: number) => [limit],
    }
    const orders = eventedStorage(repository, { entity: 'order', emit: ac.emit })
    expectTypeOf(orders).toEqualTypeOf<typeof repository>()
    expect(orders.recent(3)).toEqual([3])
  })
})
