import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { baseName, checkEventName, isEventName, kindOf, UnknownEventError } from '../../src/events/index.ts'
import { thrownBy } from './thrown.ts'

describe('event names', () => {
  it.each(['order.placed', 'order_created', 'a', 'invoice.payment_failed.v12', `a.${'b'.repeat(198)}`])(
    'accepts %s',
    (name) => {
      expect(isEventName(name)).toBe(true)
    },
  )

  it.each([
    '',
    '.',
    'a..b',
    '.a',
    'a.',
    '1a',
    'a.1',
    'Order',
    'a b',
    "a'; drop table x",
    '$1',
    '%',
    'a\nb',
    'a\n',
    'a\u202eb',
    'ä',
    '🙂',
    `a${'b'.repeat(200)}`,
  ])('refuses %j', (name) => {
    expect(isEventName(name)).toBe(false)
    expect(thrownBy(AftercommitError, () => checkEventName(name)).code).toBe('BAD_EVENT_NAME')
  })

  it.each([
    ['Order.Placed', 'order.placed'],
    ['OrderPlaced', 'order_placed'],
    ['order:placed', 'order.placed'],
    ['order-placed', 'order_placed'],
    [' order.placed ', 'order.placed'],
    ['order..placed', 'order.placed'],
  ])('suggests for %j the name %s', (name, suggestion) => {
    expect(() => checkEventName(name)).toThrow(`Did you mean "${suggestion}"?`)
  })

  it('never suggests a name that is refused in turn', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        fc.pre(!isEventName(name))
        const { message } = thrownBy(AftercommitError, () => checkEventName(name))
        const suggestion = /Did you mean "(.*)"\?$/s.exec(message)?.[1]
        expect(suggestion === undefined || isEventName(suggestion)).toBe(true)
      }),
    )
  })

  it('keeps hostile names short and on one line in messages', () => {
    const { message } = thrownBy(AftercommitError, () => checkEventName(`x\n\u0000${'y'.repeat(10_000)}`))
    expect(message.length).toBeLessThan(300)
    expect(message).not.toMatch(/[\n\u0000]/)
  })

  it.each([
    ['session.created.v2', 'session.created'],
    ['session.created', 'session.created'],
    ['a.v1.v2', 'a.v1'],
    ['v1', 'v1'],
    ['a.v0', 'a.v0'],
    ['a.v01', 'a.v01'],
    ['a.rev2', 'a.rev2'],
    ['a.v', 'a.v'],
  ])('takes the version off %s', (name, base) => {
    expect(baseName(name)).toBe(base)
  })

  it.each([
    ['order.created', 'created'],
    ['order_created', 'created'],
    ['order.created.v3', 'created'],
    ['order.line_updated', 'updated'],
    ['order.deleted', 'deleted'],
    ['order.recreated', 'custom'],
    ['created.order', 'custom'],
    ['order.placed', 'custom'],
  ])('takes the kind of %s to be %s', (name, kind) => {
    expect(kindOf(name)).toBe(kind)
  })

  it('says which name was probably meant', () => {
    const error = new UnknownEventError('order.plcaed', ['order.placed', 'order.shipped'])
    expect(error.code).toBe('UNKNOWN_EVENT')
    expect(error.closest).toBe('order.placed')
    expect(error.message).toBe(
      'No event named "order.plcaed" is defined, so nothing was emitted. Did you mean "order.placed"?',
    )
  })
})
