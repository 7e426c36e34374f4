import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { changedFrom, changedTo, ExactNumber, fieldChanged, parseJson } from '../../src/events/index.ts'
import { sampleEvent } from './sample-event.ts'
import { thrownBy } from './thrown.ts'

const event = sampleEvent({
  changes: {
    status: { old: 'open', new: 'paid' },
    tags: { old: null, new: [{ a: 1, b: [2] }, 'x'] },
    total: { old: parseJson('9007199254740993'), new: parseJson('0.100000000000000000000000000001') },
  },
})

describe('changes', () => {
  it('know which fields changed', () => {
    expect(fieldChanged(event, 'status')).toBe(true)
    expect(fieldChanged(event, 'carrier')).toBe(false)
    for (const inherited of ['constructor', 'toString', '__proto__']) expect(fieldChanged(event, inherited)).toBe(false)
  })

  it('know the value before and after', () => {
    expect(changedTo(event, 'status', 'paid')).toBe(true)
    expect(changedTo(event, 'status', 'open')).toBe(false)
    expect(changedFrom(event, 'status', 'open')).toBe(true)
    expect(changedFrom(event, 'status', 'paid')).toBe(false)
    expect(changedTo(event, 'carrier', undefined)).toBe(false)
  })

  it('compare whole values, whatever the order of keys', () => {
    expect(changedTo(event, 'tags', [{ b: [2], a: 1 }, 'x'])).toBe(true)
    expect(changedTo(event, 'tags', [{ b: [2], a: 1 }])).toBe(false)
    expect(changedTo(event, 'tags', [{ b: [2], c: 1 }, 'x'])).toBe(false)
    expect(changedTo(event, 'tags', { 0: { a: 1, b: [2] }, 1: 'x' })).toBe(false)
    expect(changedFrom(event, 'tags', null)).toBe(true)
    expect(changedFrom(event, 'tags', {})).toBe(false)
  })

  it('compare numbers digit for digit, in whatever form they come', () => {
    expect(changedFrom(event, 'total', 9007199254740993n)).toBe(true)
    expect(changedFrom(event, 'total', 9007199254740992)).toBe(false)
    expect(changedFrom(event, 'total', '9007199254740993')).toBe(false)
    expect(changedTo(event, 'total', 0.1)).toBe(false)
    expect(changedTo(event, 'total', new ExactNumber('1.00000000000000000000000000001e-1'))).toBe(true)
    expect(changedTo(event, 'total', Number.NaN)).toBe(false)
    expect(changedTo(event, 'total', { text: '0.100000000000000000000000000001' })).toBe(false)
  })

  it('are not guessed at when the event carries none', () => {
    const silent = sampleEvent({ changes: null })
    for (const ask of [
      () => fieldChanged(silent, 'status'),
      () => changedTo(silent, 'status', 'paid'),
      () => changedFrom(silent, 'status', 'open'),
    ]) {
      const error = thrownBy(AftercommitError, ask)
      expect(error.code).toBe('BAD_EVENT')
      expect(error.message).toContain('carries no changes')
    }
  })
})
