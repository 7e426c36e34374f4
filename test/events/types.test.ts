import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  type AftercommitEvent,
  checkPayload,
  defineEvents,
  type EventDefinitions,
  type EventName,
  type EventOf,
  type Payload,
  type PayloadInput,
} from '../../src/events/index.ts'

const events = defineEvents({
  'order.placed': z.object({ total: z.number(), at: z.string().transform((text) => new Date(text)) }),
  'order.item.added': v.object({ sku: v.string() }),
  'order.shipped.v2': {
    schema: z.object({ carrier: z.string() }),
    upcast: { 1: (old: { by: string }) => ({ carrier: old.by }) },
  },
  user_created: type({ email: 'string' }),
})
type Events = typeof events
type NameOf<E> = E extends { type: infer Name } ? Name : never

// The compiler is the judge of most of this file; each test also runs, so that a definition that throws is noticed.
describe('the compiler', () => {
  it('knows the names of the catalogue', () => {
    expectTypeOf<EventName<Events>>().toEqualTypeOf<
      'order.placed' | 'order.item.added' | 'order.shipped.v2' | 'user_created'
    >()
    expect(events.names).toEqual(['order.placed', 'order.item.added', 'order.shipped.v2', 'user_created'])
  })

  it('knows what emit takes and what handlers get, for any schema library', () => {
    expectTypeOf<PayloadInput<Events, 'order.placed'>>().toEqualTypeOf<{ total: number; at: string }>()
    expectTypeOf<Payload<Events, 'order.placed'>>().toEqualTypeOf<{ total: number; at: Date }>()
    expectTypeOf<Payload<Events, 'order.item.added'>>().toEqualTypeOf<{ sku: string }>()
    expectTypeOf<Payload<Events, 'order.shipped.v2'>>().toEqualTypeOf<{ carrier: string }>()
    expectTypeOf<Payload<Events, 'user_created'>>().toEqualTypeOf<{ email: string }>()
  })

  it('refuses a name that is not in the catalogue', () => {
    // @ts-expect-error there is no such event
    expect(() => checkPayload(events, 'order.plced', {})).toThrow('order.placed')
    // @ts-expect-error there is no such event
    expectTypeOf<Payload<Events, 'order.plced'>>()
  })

  it('refuses a payload of the wrong shape', () => {
    const good: PayloadInput<Events, 'order.placed'> = { total: 1, at: '2026-01-01' }
    // @ts-expect-error total is a number
    const bad: PayloadInput<Events, 'order.placed'> = { total: '1', at: '2026-01-01' }
    expect([good.total, bad.total]).toEqual([1, '1'])
  })

  it('chooses the events that patterns match', () => {
    expectTypeOf<NameOf<EventOf<Events, 'order.placed'>>>().toEqualTypeOf<'order.placed'>()
    expectTypeOf<NameOf<EventOf<Events, 'order.*'>>>().toEqualTypeOf<'order.placed' | 'order.shipped.v2'>()
    expectTypeOf<NameOf<EventOf<Events, 'order.**'>>>().toEqualTypeOf<
      'order.placed' | 'order.item.added' | 'order.shipped.v2'
    >()
    expectTypeOf<NameOf<EventOf<Events, '**.added'>>>().toEqualTypeOf<'order.item.added'>()
    expectTypeOf<NameOf<EventOf<Events, 'order.**.added'>>>().toEqualTypeOf<'order.item.added'>()
    expectTypeOf<NameOf<EventOf<Events, 'order.p*d'>>>().toEqualTypeOf<'order.placed'>()
    expectTypeOf<NameOf<EventOf<Events, '*_created'>>>().toEqualTypeOf<'user_created'>()
    expectTypeOf<NameOf<EventOf<Events, '*'>>>().toEqualTypeOf<EventName<Events>>()
    expectTypeOf<NameOf<EventOf<Events, '**'>>>().toEqualTypeOf<EventName<Events>>()
    expectTypeOf<NameOf<EventOf<Events>>>().toEqualTypeOf<EventName<Events>>()
    expectTypeOf<EventOf<Events, 'invoice.*'>>().toEqualTypeOf<never>()
    expectTypeOf<EventOf<Events, 'order'>>().toEqualTypeOf<never>()
  })

  it('ignores the version of a name, in the event and in the pattern', () => {
    expectTypeOf<NameOf<EventOf<Events, 'order.shipped'>>>().toEqualTypeOf<'order.shipped.v2'>()
    expectTypeOf<NameOf<EventOf<Events, 'order.shipped.v1'>>>().toEqualTypeOf<'order.shipped.v2'>()
    expectTypeOf<EventOf<Events, 'order.shipped.*'>>().toEqualTypeOf<never>()
  })

  it('takes a list of patterns as their union', () => {
    expectTypeOf<NameOf<EventOf<Events, readonly ['order.placed', '*_created']>>>().toEqualTypeOf<
      'order.placed' | 'user_created'
    >()
    expectTypeOf<NameOf<EventOf<Events, readonly string[]>>>().toEqualTypeOf<EventName<Events>>()
  })

  it('narrows the payload by the type of the event', () => {
    const handle = (event: EventOf<Events, 'order.**'>) => {
      if (event.type === 'order.placed') expectTypeOf(event.payload).toEqualTypeOf<{ total: number; at: Date }>()
      else expectTypeOf(event.payload).toEqualTypeOf<{ sku: string } | { carrier: string }>()
    }
    expectTypeOf(handle).parameter(0).toExtend<AftercommitEvent>()
  })

  it('knows nothing of the payload without a catalogue', () => {
    expectTypeOf<EventName<EventDefinitions>>().toEqualTypeOf<string>()
    expectTypeOf<EventOf<EventDefinitions, 'order.*'>>().toEqualTypeOf<AftercommitEvent>()
    expectTypeOf<Events>().toExtend<EventDefinitions>()
  })

  it('does not see the payload of a spread event, which is not there', () => {
    const spread = (event: AftercommitEvent) => ({ ...event })
    expectTypeOf<ReturnType<typeof spread>>().not.toHaveProperty('payload')
  })
})
