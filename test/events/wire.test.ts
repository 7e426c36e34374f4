import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromWire, parseJson, stringifyJson, toWire, type WireEvent } from '../../src/events/index.ts'
import { events } from './event-samples.ts'
import { sampleEvent } from './sample-event.ts'

describe('the wire form', () => {
  it('is snake_case, whole, and has the position as text', () => {
    expect(toWire(sampleEvent())).toMatchObject({
      position: '42',
      aggregate_type: 'order',
      payload: { total: 90, note: 'secret-payload' },
      metadata: { user_id: 'secret-user', region: 'secret-region' },
      occurred_at: '2026-03-01T12:00:00.000Z',
    })
  })

  it('loses nothing on the way through JSON text', () => {
    fc.assert(
      fc.property(events, (event) => {
        const text = stringifyJson(toWire(event), { maxBytes: Number.POSITIVE_INFINITY })
        expect(fromWire(parseJson(text) as WireEvent)).toEqual(event)
      }),
    )
  })

  it.each([
    ['0001-01-01T00:00:00.000Z', '0001-01-01T00:00:00.000Z'],
    ['-000043-03-15T00:00:00.000Z', '-000043-03-15T00:00:00.000Z'],
    ['+275760-09-13T00:00:00.000Z', '+275760-09-13T00:00:00.000Z'],
    ['infinity', null],
  ])('renders the time %s as %s', (given, shown) => {
    const wire = toWire(sampleEvent({ occurredAt: new Date(given) }))
    expect(wire.occurred_at).toBe(shown)
    expect(toWire(fromWire(wire)).occurred_at).toBe(shown)
  })

  it('is refused when it is not one', () => {
    expect(() => fromWire({ id: 'a', type: 'b' } as WireEvent)).toThrow('not an event')
  })
})
