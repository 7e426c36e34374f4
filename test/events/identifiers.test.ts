import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { checkAggregate, checkEventId, checkTenant, newEventId } from '../../src/events/index.ts'
import { thrownBy } from './thrown.ts'

const bad = ['', 'a\0b', '\ud800', 'a'.repeat(256), '🙂'.repeat(256), 'a'.repeat(10_000), null, undefined, 7, {}]
const good = ['a', '0', "'; drop table x", '$1', '%', '..', 'a/b', 'ä🙂', 'a'.repeat(255), '🙂'.repeat(255)]

describe('ids', () => {
  it('are UUIDs of version 7 that sort by the order they were made in', () => {
    const ids = Array.from({ length: 1000 }, newEventId)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(new Set(ids).size).toBe(1000)
    expect([...ids].sort()).toEqual(ids)
  })

  it.each(good)('may be %j', (text) => {
    expect(() => checkEventId(text)).not.toThrow()
    expect(() => checkAggregate({ type: text, id: text })).not.toThrow()
    expect(() => checkTenant(text)).not.toThrow()
  })

  it.each(bad.map((text) => [text]))('may not be %j', (text) => {
    for (const check of [
      () => checkEventId(text),
      () => checkAggregate({ type: text, id: 'a' }),
      () => checkAggregate({ type: 'a', id: text }),
      () => checkTenant(text),
    ]) {
      expect(thrownBy(AftercommitError, check).code).toBe('BAD_EVENT')
    }
  })

  it('of events have no control characters, since they travel in headers and log lines', () => {
    for (const id of ['a\nb', 'a\rb', 'a\u007f', '\u0085']) expect(() => checkEventId(id)).toThrow('control character')
    expect(() => checkAggregate({ type: 'order', id: 'two\nlines' })).not.toThrow()
  })

  it('are named by what they are in the message, never by their value', () => {
    const { message } = thrownBy(AftercommitError, () => checkAggregate({ type: 'order', id: 'secret\0' }))
    expect(message).toContain('The aggregate id holds U+0000')
    expect(message).not.toContain('secret')
  })
})
