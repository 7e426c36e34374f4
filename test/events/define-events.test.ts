import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, EventDefinitionError, type EventSchemas } from '../../src/events/index.ts'
import { thrownBy } from './thrown.ts'

const schema = z.object({})
const same = (payload: unknown) => payload
const problemsOf = (schemas: unknown, streams: readonly string[] = []) =>
  thrownBy(EventDefinitionError, () => defineEvents(schemas as EventSchemas, { streams })).problems.map(
    (p) => p.message,
  )

describe('defineEvents', () => {
  it('takes schemas of several libraries in one catalogue', () => {
    const events = defineEvents({
      'a.done': z.object({}),
      'b.done': v.object({}),
      'c.done': type({}),
    })
    expect(events.names).toEqual(['a.done', 'b.done', 'c.done'])
    expect(events.get('c.done')?.version).toBe(1)
  })

  it('keeps the aggregate types that are streams', () => {
    expect(defineEvents({ 'order.placed': schema }, { streams: ['order'] }).streams).toEqual(['order'])
  })

  it('takes the version from the suffix when none is given', () => {
    const events = defineEvents({ 'session.created.v2': { schema, upcast: { 1: same } } })
    expect(events.get('session.created.v2')?.version).toBe(2)
  })

  it('finds the current definition for a stored type whatever its version, and only exact names otherwise', () => {
    const events = defineEvents({ 'session.created.v2': { schema, upcast: { 1: same } } })
    for (const stored of ['session.created', 'session.created.v1', 'session.created.v2', 'session.created.v9']) {
      expect(events.currentFor(stored)?.name).toBe('session.created.v2')
    }
    expect(events.get('session.created')).toBeUndefined()
    expect(events.currentFor('session')).toBeUndefined()
  })

  it('does not take inherited properties for definitions', () => {
    const events = defineEvents({ 'order.placed': schema })
    for (const name of ['constructor', 'toString', '__proto__']) {
      expect(events.get(name)).toBeUndefined()
      expect(events.currentFor(name)).toBeUndefined()
    }
    expect(defineEvents({ constructor: schema }).get('constructor')?.name).toBe('constructor')
  })

  it('reports every mistake at once', () => {
    const problems = problemsOf(
      {
        OrderPlaced: schema,
        'order.paid.v2': { schema, version: 3, upcast: { 1: same, 2: same } },
        'order.sent': { schema, version: 3, upcast: { 2: same } },
        'order.lost': { schema, upcast: { 1: same } },
        'order.kept': {},
        'order.held': { schema, version: 1.5 },
        'order.read': { schema, version: 2, upcast: { 1: 'not a function' } },
        'order.seen.v1': schema,
        'order.seen': schema,
      },
      ['order', 'order', ''],
    )
    expect(problems).toEqual([
      expect.stringMatching(/^"OrderPlaced" is not an event name: .* Did you mean "order_placed"\?$/),
      expect.stringContaining('"order.paid.v2" ends in .v2 but has version 3'),
      expect.stringContaining('"order.sent" has version 3 but no upcast for 1'),
      expect.stringContaining('"order.lost" has an upcast step "1" that leads nowhere'),
      expect.stringContaining('"order.kept" has no schema'),
      expect.stringContaining('"order.held" has a version that is not a whole number'),
      expect.stringContaining('"order.read" has an upcast step 1 that is not a function'),
      expect.stringContaining('"order.seen" is the same event as "order.seen.v1"'),
      expect.stringContaining('Stream "order" is listed twice'),
      expect.stringContaining('Stream "" is empty'),
    ])
  })

  it('names the error so that programs can branch on it', () => {
    const error = thrownBy(EventDefinitionError, () => defineEvents({ 'Bad Name': schema }))
    expect(error.code).toBe('BAD_DEFINITION')
    expect(error.problems[0]?.name).toBe('Bad Name')
    expect(error.message).toContain('one mistake')
  })

  it('answers quickly even when the version is absurd', () => {
    expect(problemsOf({ 'a.b': { schema, version: Number.MAX_SAFE_INTEGER } })).toHaveLength(1)
  })
})
