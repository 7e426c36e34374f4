import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { metadataFromStored, metadataToStored } from '../../src/events/index.ts'
import { metadata } from './event-samples.ts'
import { thrownBy } from './thrown.ts'

describe('metadata', () => {
  it('is camelCase in TypeScript and snake_case where it is stored', () => {
    const stored = {
      correlation_id: 'c',
      causation_id: 'p',
      user_id: 'u',
      traceparent: 't',
      schema_version: 3,
      depth: 2,
      freeKey: 1,
      other_key: { a: null },
    }
    const typed = {
      correlationId: 'c',
      causationId: 'p',
      userId: 'u',
      traceparent: 't',
      schemaVersion: 3,
      depth: 2,
      freeKey: 1,
      other_key: { a: null },
    }
    expect(metadataFromStored(stored)).toEqual(typed)
    expect(metadataToStored(typed)).toEqual(stored)
  })

  it('is complete when nothing is stored, and stores nothing of that', () => {
    const empty = metadataFromStored(null)
    expect(empty).toEqual({
      correlationId: null,
      causationId: null,
      userId: null,
      traceparent: null,
      schemaVersion: 1,
      depth: 0,
    })
    expect(metadataToStored(empty)).toEqual({})
  })

  it('comes back from storage as it was', () => {
    fc.assert(
      fc.property(metadata, (given) => {
        expect(metadataFromStored(metadataToStored(given))).toEqual(given)
      }),
    )
  })

  it('keeps a free key called __proto__ as a key', () => {
    const stored = JSON.parse('{"__proto__":{"polluted":true}}')
    const typed = metadataFromStored(stored)
    expect(Object.getPrototypeOf(typed)).toBe(Object.getPrototypeOf(metadataFromStored({})))
    expect('polluted' in typed).toBe(false)
    expect(JSON.stringify(metadataToStored(typed))).toBe('{"__proto__":{"polluted":true}}')
    expect('polluted' in {}).toBe(false)
  })

  it('refuses a key in its stored spelling, which would shadow the real one', () => {
    const error = thrownBy(AftercommitError, () => metadataToStored({ user_id: 'x' }))
    expect(error.code).toBe('BAD_EVENT')
    expect(error.message).toContain('Write "userId"')
  })

  it('makes sense of what plain SQL may have stored', () => {
    const typed = metadataFromStored({
      user_id: 42,
      correlation_id: { odd: true },
      schema_version: '2',
      depth: -1,
      userId: 'not the user',
    })
    expect(typed).toMatchObject({ userId: '42', correlationId: null, schemaVersion: 2, depth: 0 })
  })
})
