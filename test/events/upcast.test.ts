import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, SchemaVersionTooNewError, UpcastFailedError, upcast } from '../../src/events/index.ts'
import { thrownBy } from './thrown.ts'

const events = defineEvents({
  'order.placed': {
    schema: z.object({ total: z.object({ amount: z.number(), currency: z.string() }), source: z.string() }),
    version: 3,
    upcast: {
      1: (old: { total: number }) => ({ total: { amount: old.total, currency: 'EUR' } }),
      2: (old: object) => ({ ...old, source: 'unknown' }),
    },
  },
  'session.created.v2': { schema: z.object({}), upcast: { 1: (old: object) => ({ ...old, lifted: true }) } },
  'order.shipped': z.object({}),
})
const stored = (type: string, payload: unknown, schemaVersion = 1) => ({ id: 'evt-1', type, payload, schemaVersion })

describe('upcasting', () => {
  it('lifts an event of version 1 step by step to version 3', () => {
    expect(upcast(events, stored('order.placed', { total: 5 }))).toEqual(
      stored('order.placed', { total: { amount: 5, currency: 'EUR' }, source: 'unknown' }, 3),
    )
  })

  it('begins at the stored version', () => {
    const payload = { total: { amount: 5, currency: 'USD' } }
    expect(upcast(events, stored('order.placed', payload, 2)).payload).toEqual({ ...payload, source: 'unknown' })
  })

  it('leaves what is current, and what it does not know, untouched', () => {
    for (const event of [stored('order.placed', {}, 3), stored('order.shipped', {}), stored('cart.left', {}, 9)]) {
      expect(upcast(events, event)).toBe(event)
    }
  })

  it.each(['session.created', 'session.created.v1'])('reads a stored %s as session.created.v2', (type) => {
    expect(upcast(events, stored(type, { a: 1 }))).toEqual(stored('session.created.v2', { a: 1, lifted: true }, 2))
  })

  it('trusts the version in the name of a stored event', () => {
    const event = stored('session.created.v2', { a: 1 })
    expect(upcast(events, event).payload).toEqual({ a: 1 })
  })

  it('stops at a version from the future instead of guessing', () => {
    const error = thrownBy(SchemaVersionTooNewError, () => upcast(events, stored('order.placed', {}, 4)))
    expect(error).toMatchObject({
      code: 'SCHEMA_VERSION_TOO_NEW',
      eventName: 'order.placed',
      eventId: 'evt-1',
      found: 4,
      known: 3,
    })
    expect(() => upcast(events, stored('session.created.v3', {}))).toThrow(SchemaVersionTooNewError)
  })

  it('names the step that failed and keeps its error', () => {
    const error = thrownBy(UpcastFailedError, () => upcast(events, stored('order.placed', null)))
    expect(error).toMatchObject({ code: 'UPCAST_FAILED', eventName: 'order.placed', eventId: 'evt-1', fromVersion: 1 })
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('refuses a step that answers later', () => {
    const late = defineEvents({
      'a.b': { schema: z.object({}), version: 2, upcast: { 1: () => Promise.reject(new Error('late')) } },
    })
    const error = thrownBy(UpcastFailedError, () => upcast(late, stored('a.b', {})))
    expect(String(error.cause)).toContain('asynchronous')
  })
})
