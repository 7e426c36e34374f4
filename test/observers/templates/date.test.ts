import { describe, expect, it } from 'vitest'
import { refusedAtLoad, refusedAtRender, render } from './support.ts'

const at = '2026-03-01T09:05:07.089Z'
const show = (value: unknown, args = '') => render(`{{ value | date${args} }}`, { value })

describe('the tokens of a date', () => {
  it.each([
    ['YYYY', '2026'],
    ['YY', '26'],
    ['MMMM', 'March'],
    ['MMM', 'Mar'],
    ['MM', '03'],
    ['M', '3'],
    ['DD', '01'],
    ['D', '1'],
    ['dddd', 'Sunday'],
    ['ddd', 'Sun'],
    ['HH', '09'],
    ['H', '9'],
    ['hh', '09'],
    ['h', '9'],
    ['mm', '05'],
    ['m', '5'],
    ['ss', '07'],
    ['s', '7'],
    ['SSS', '089'],
    ['A', 'AM'],
    ['a', 'am'],
    ['Z', '+00:00'],
    ['YYYYMMDD', '20260301'],
    ['YYYY-MM-DDTHH:mm:ss.SSSZ', '2026-03-01T09:05:07.089+00:00'],
    ['DD.MM.YYYY, HH:mm', '01.03.2026, 09:05'],
    ['D [of] MMMM [YYYY]', '1 of March YYYY'],
    ['[', '['],
    ['', ''],
  ])('%s is %s', (format, text) => {
    expect(show(at, `('${format}')`)).toBe(text)
  })

  it('knows noon and midnight', () => {
    expect(show('2026-03-01T00:00:00Z', "('h A')")).toBe('12 AM')
    expect(show('2026-03-01T12:00:00Z', "('h A')")).toBe('12 PM')
  })

  it.each([
    ['yyyy-mm-dd', 'YYYY'],
    ['YYYYY', undefined],
    ['YYYY at', undefined],
    ['qq', undefined],
  ])('refuses %s when the template is loaded', (format, suggestion) => {
    const error = refusedAtLoad(`{{ x | date('${format}') }}`)
    expect(error.reason).toBe('the format of a date has letters that mean nothing')
    expect(error.suggestion).toBe(suggestion)
  })

  it('takes a format from the event, within bounds', () => {
    expect(render('{{ at | date(format) }}', { at, format: 'HH' })).toBe('09')
    expect(refusedAtRender('{{ at | date(format) }}', { at, format: '-'.repeat(101) }).reason).toContain('longer than')
    expect(refusedAtRender('{{ at | date(format) }}', { at }).reason).toBe('the format of a date is nothing')
  })
})

describe('a date', () => {
  it.each([
    [at, '2026-03-01'],
    [new Date(at), '2026-03-01'],
    ['2026-03-01', '2026-03-01'],
    ['2026-03-01 23:30:00+00', '2026-03-01'],
    ['2026-03-01T23:30:00-02:00', '2026-03-02'],
    ['2026-03-01T00:30:00+0530', '2026-02-28'],
    ['2026-03-01T12:00:00.123456+00:00', '2026-03-01'],
    ['2026-03-01T12:00', '2026-03-01'],
    ['2024-02-29', '2024-02-29'],
  ])('reads %s', (value, text) => {
    expect(show(value)).toBe(text)
  })

  it('reads the time of the event itself', () => {
    expect(render("{{ event.occurred_at | date('YYYY-MM-DD HH:mm', 'America/New_York') }}")).toBe('2026-03-01 07:00')
  })

  it.each([
    ['infinity', 'infinity'],
    ['-infinity', '-infinity'],
    ['0001-01-01T00:00:00+00:00', '0001-01-01'],
    ['0099-12-31', '0099-12-31'],
    ['0044-03-15T00:00:00+00:00 BC', '0044-03-15 BC'],
    ['0001-02-29 BC', '0001-02-29 BC'],
    ['4713-11-24 BC', '4713-11-24 BC'],
    ['12026-03-01', '12026-03-01'],
    ['294276-12-31T23:59:59+00:00', '294276-12-31'],
    [new Date(8.64e15), '275760-09-13'],
    [new Date(-8.64e15), '271822-04-20 BC'],
  ])('renders %s, at the edges of time, as %s', (value, text) => {
    expect(show(value)).toBe(text)
    expect(show(value, "('YYYY-MM-DD', 'Asia/Kolkata')")).toMatch(/^-?(infinity|\d{4,6}-\d\d-\d\d( BC)?)$/)
  })

  it('keeps the weekday beyond the end of Date', () => {
    expect(show('294276-12-31', "('ddd')")).toBe(show('2276-12-31', "('ddd')"))
  })

  it.each(['', 'soon', '2026-02-30', '2026-13-01', '2026-03-01T25:00:00Z', '03/01/2026', 7, true, [], {}, '1e3'])(
    'refuses %j without repeating it',
    (value) => {
      const error = refusedAtRender('{{ value | date }}', { value })
      expect(error.reason).toMatch(
        /^filter "date" takes a time, and was given (text that is none|a number|true|a list|an)/,
      )
      if (typeof value === 'string' && value.length > 4) expect(error.message).not.toContain(value)
    },
  )
})

describe('a zone', () => {
  it.each([
    ['Europe/Berlin', '2026-03-01T12:00:00Z', '2026-03-01 13:00 +01:00'],
    ['Europe/Berlin', '2026-07-01T12:00:00Z', '2026-07-01 14:00 +02:00'],
    ['Europe/Berlin', '2026-03-29T00:59:59Z', '2026-03-29 01:59 +01:00'],
    ['Europe/Berlin', '2026-03-29T01:00:00Z', '2026-03-29 03:00 +02:00'],
    ['America/New_York', '2026-03-01T02:00:00Z', '2026-02-28 21:00 -05:00'],
    ['Asia/Kolkata', '2026-12-31T20:00:00Z', '2027-01-01 01:30 +05:30'],
    ['Pacific/Kiritimati', '2026-03-01T12:00:00Z', '2026-03-02 02:00 +14:00'],
    ['UTC', '2026-03-01T00:00:00Z', '2026-03-01 00:00 +00:00'],
  ])('%s shows %s as %s', (zone, value, text) => {
    expect(show(value, `('YYYY-MM-DD HH:mm Z', '${zone}')`)).toBe(text)
  })

  it('does not move a day of the calendar', () => {
    expect(show('2026-03-01', "('YYYY-MM-DD', 'America/New_York')")).toBe('2026-03-01')
  })

  it('that is not known is refused, when the template is loaded if it stands there', () => {
    expect(refusedAtLoad("{{ x | date('HH', 'Europe/Berln') }}").suggestion).toBe('Europe/Berlin')
    expect(refusedAtRender("{{ at | date('HH', zone) }}", { at, zone: 'Mars/Base' }).reason).toBe(
      'the time zone is not known',
    )
    expect(refusedAtRender("{{ at | date('HH', zone) }}", { at }).reason).toBe('the time zone is nothing')
  })
})
