import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AftercommitError } from '../../src/errors.ts'
import {
  checkPayload,
  defineEvents,
  InvalidPayloadError,
  payloadAs,
  type StandardSchema,
  UnknownEventError,
} from '../../src/events/index.ts'
import { sampleEvent } from './sample-event.ts'
import { thrownBy } from './thrown.ts'

const events = defineEvents({
  'zod.done': z.object({ items: z.array(z.object({ name: z.string() })) }),
  'valibot.done': v.object({ items: v.array(v.object({ name: v.string() })) }),
  'arktype.done': type({ items: type({ name: 'string' }).array() }),
  'late.done': z.object({ n: z.number().refine(async (n) => n > 0) }),
  'date.done': z.object({ at: z.string().transform((text) => new Date(text)) }),
})

describe('checking a payload', () => {
  it.each(['zod.done', 'valibot.done', 'arktype.done'] as const)('of %s names the place of each issue', (name) => {
    expect(checkPayload(events, name, { items: [{ name: 'x' }] })).toEqual({ items: [{ name: 'x' }] })
    const error = thrownBy(InvalidPayloadError, () =>
      checkPayload(events, name, { items: [{ name: 'x' }, { name: 1 }] }),
    )
    expect(error.code).toBe('INVALID_PAYLOAD')
    expect(error.eventName).toBe(name)
    expect(error.issues.map((issue) => issue.path)).toEqual(['payload.items[1].name'])
    expect(error.message).toContain('payload.items[1].name: ')
  })

  it('gives what the schema makes of it', () => {
    expect(checkPayload(events, 'date.done', { at: '2026-01-01' })).toEqual({ at: new Date('2026-01-01') })
  })

  it('answers later only when the schema does', async () => {
    expect(checkPayload(events, 'zod.done', { items: [] })).not.toBeInstanceOf(Promise)
    const late = checkPayload(events, 'late.done', { n: 1 })
    expect(late).toBeInstanceOf(Promise)
    expect(await late).toEqual({ n: 1 })
    await expect(checkPayload(events, 'late.done', { n: -1 })).rejects.toBeInstanceOf(InvalidPayloadError)
  })

  it('refuses an event that is not defined', () => {
    const error = thrownBy(UnknownEventError, () => checkPayload(events, 'zod.dome' as 'zod.done', {}))
    expect(error.closest).toBe('zod.done')
  })

  it('keeps a bounded number of issues of bounded length', () => {
    const issues = Array.from({ length: 500 }, (_, at) => ({
      message: `line\n${'m'.repeat(5000)}\0`,
      path: [{ key: 'list' }, at, Symbol('s')],
    }))
    const error = new InvalidPayloadError('order.placed', issues)
    expect(error.issues).toHaveLength(20)
    expect(error.issues[0]?.path).toBe('payload.list[0]["Symbol(s)"]')
    expect(error.issues[0]?.message).toHaveLength(200)
    expect(error.issues[0]?.message).toMatch(/^line m+…$/)
    expect(error.message).toContain('and 497 more')
    expect(error.message.length).toBeLessThan(1000)
  })

  it('tells a schema that throws from a payload that does not fit', () => {
    const cause = new Error('broken schema')
    const broken: StandardSchema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: () => {
          throw cause
        },
      },
    }
    const error = thrownBy(AftercommitError, () => checkPayload(defineEvents({ 'a.b': broken }), 'a.b', {}))
    expect(error).not.toBeInstanceOf(InvalidPayloadError)
    expect(error.cause).toBe(cause)
  })
})

describe('payloadAs', () => {
  it('reads the payload of any event through a schema', () => {
    expect(payloadAs(z.object({ total: z.number() }))(sampleEvent())).toEqual({ total: 90 })
    expect(() => payloadAs(z.object({ total: z.string() }))(sampleEvent())).toThrow(InvalidPayloadError)
  })

  it('refuses a schema that cannot answer at once', () => {
    const late = z.object({ total: z.number().refine(async () => false) })
    expect(() => payloadAs(late)(sampleEvent())).toThrow('asynchronously')
  })
})
