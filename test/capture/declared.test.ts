import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { withCapturedEvents } from '../../src/capture/index.ts'
import { createAftercommit, defineEvents } from '../../src/index.ts'

const events = defineEvents({ 'shop.opened': z.object({ at: z.string() }) })
const row = z.object({ id: z.number(), status: z.string() })

describe('the catalogue of captured tables', () => {
  it('types the events of declared tables by the schema of their rows', () => {
    const ac = createAftercommit({
      events,
      capture: { orders: { row }, 'sales.categories': { aggregate: 'group', row }, boxes: {}, addresses: { row } },
    })
    onTestFinished(() => ac.stop())
    ac.subscribe({
      id: 'typed',
      on: ['order.*', 'address.created'],
      handle: (event) => {
        expectTypeOf(event.type).toEqualTypeOf<
          'order.created' | 'order.updated' | 'order.deleted' | 'order.existing' | 'order.truncated' | 'address.created'
        >()
        if (event.type === 'order.updated') expectTypeOf(event.payload).toEqualTypeOf<{ id: number; status: string }>()
        if (event.type === 'order.truncated') expectTypeOf(event.payload).toEqualTypeOf<{ table: string }>()
      },
    })
    ac.subscribe({
      id: 'others',
      on: ['group.created', 'box.deleted'],
      handle: (event) => {
        if (event.type === 'group.created') expectTypeOf(event.payload).toEqualTypeOf<{ id: number; status: string }>()
        if (event.type === 'box.deleted') expectTypeOf(event.payload).toEqualTypeOf<Record<string, unknown>>()
      },
    })
  })

  it('holds the names that SQL gives, and leaves other events as they are', () => {
    const joined = withCapturedEvents(events, { orders: {}, categories: {}, 'sales.boxes': {}, status: {} })!
    expect(joined.names.filter((name) => name.endsWith('.created'))).toEqual([
      'order.created',
      'category.created',
      'box.created',
      'status.created',
    ])
    expect(joined.get('shop.opened')).toBeDefined()
    expect(withCapturedEvents(undefined, { orders: {} })).toBeUndefined()
  })
})
