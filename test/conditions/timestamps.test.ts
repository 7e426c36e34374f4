import { describe, expect, it } from 'vitest'
import { ConditionError, compileCondition } from '../../src/conditions/index.ts'
import { parseSpan, parseTimestamp } from '../../src/conditions/timestamps.ts'
import { thrownBy } from '../events/thrown.ts'
import { holds, problemOf } from './evaluate.ts'

describe('times', () => {
  it.each([
    "event.occurred_at > timestamp('2026-01-01T00:00:00Z')",
    "timestamp(event.occurred_at) == timestamp('2026-03-01T12:00:00Z')",
    "event.recorded_at - event.occurred_at == duration('250ms')",
    'event.recorded_at - event.occurred_at < duration("1s")',
    "timestamp(paid_at) > event.occurred_at - duration('7d')",
    "timestamp(paid_at) + duration('1h30m') == timestamp('2026-03-01T12:00:00Z')",
    "timestamp(paid_at) == timestamp('2026-03-01 11:30:00+01')",
    'event.occurred_at.getFullYear() == 2026 && event.occurred_at.getMonth() == 2 && event.occurred_at.getDate() == 1',
    "event.occurred_at.getHours() == 12 && event.occurred_at.getHours('America/New_York') == 7",
    'event.occurred_at.getDayOfWeek() == 0 && event.occurred_at.getDayOfYear() == 59',
    "string(event.occurred_at) == '2026-03-01T12:00:00.000Z'",
    'timestamp(1772366400) == event.occurred_at && int(event.occurred_at) == 1772366400',
    "duration('90s') == duration('1m30s') && duration('90s').getMinutes() == 1 && string(duration('1.5h')) == '5400s'",
    "timestamp(valid_until) > event.occurred_at && timestamp('-infinity') < event.occurred_at",
    "timestamp('0044-03-15 BC') < timestamp('0001-01-01T00:00:00Z')",
    "timestamp('294276-12-31T23:59:59Z') > timestamp('9999-12-31T23:59:59Z')",
    "timestamp('infinity') + duration('1d') == timestamp('infinity')",
  ])('%s', (source) => {
    const payload = { paid_at: '2026-03-01T10:30:00.000000', valid_until: 'infinity' }
    expect(holds(source, payload, { aggregateType: 'order' })).toBe(true)
  })

  it('compared with text are refused at load, with advice', () => {
    const mistake = thrownBy(ConditionError, () => compileCondition("event.occurred_at > '2026-01-01'"))
    expect(mistake.problem).toMatch(/write timestamp\(…\) around the text/)
  })

  it.each(['yesterday', '', '2026-02-30', '2026-13-01', '2026-01-01T25:00:00Z', `2026-01-01${' '.repeat(99)}`])(
    '%j is none',
    (text) => {
      expect(parseTimestamp(text)).toBeUndefined()
      expect(problemOf('timestamp(at) > event.occurred_at', { at: text })).toMatch(/not a timestamp/)
    },
  )

  it('of an event that are not valid are an error and no crash', () => {
    const broken = { occurredAt: new Date(Number.NaN) }
    expect(problemOf('event.occurred_at > event.recorded_at', {}, broken)).toMatch(/no order/)
    expect(problemOf('string(event.occurred_at) == ""', {}, broken)).toMatch(/no result/)
    expect(problemOf("event.occurred_at.getHours('Europe/Paris') == 1", {}, broken)).toMatch(/time zone/)
    expect(problemOf("event.occurred_at.getHours('Mars/Olympus') == 1", {})).toMatch(/time zone/)
  })

  it('of Postgres read as it writes them', () => {
    const read = (text: string) => parseTimestamp(text)?.toISOString()
    expect(read('2026-03-01T12:00:00.123456+00:00')).toBe('2026-03-01T12:00:00.123Z')
    expect(read('2026-03-01T12:00:00-05:30')).toBe('2026-03-01T17:30:00.000Z')
    expect(read('0001-01-01T00:00:00')).toBe('0001-01-01T00:00:00.000Z')
    expect(read('0044-03-15T00:00:00 BC')).toBe('-000043-03-15T00:00:00.000Z')
    expect(read('294276-12-31')).toBe('+275760-09-13T00:00:00.000Z')
  })

  it.each(['', '-', '1', '1x', 's', '1h 30m', 'h1', '9'.repeat(100)])('%j is no duration', (text) => {
    expect(parseSpan(text)).toBeUndefined()
  })
})
