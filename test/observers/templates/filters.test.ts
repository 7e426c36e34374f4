import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../../src/errors.ts'
import { ExactNumber, parseJson } from '../../../src/events/index.ts'
import { createFilters } from '../../../src/observers/templates/index.ts'
import { thrownBy } from '../../events/thrown.ts'
import { refusedAtLoad, refusedAtRender, render } from './support.ts'

const big = 9007199254740993n
const precise = new ExactNumber('0.1000000000000000000001')

const nested = { a: [1, { b: '{,:"}' }], c: {}, d: [] }

const table: Record<string, [filter: string, value: unknown, text: string][]> = {
  upper: [
    ['upper', 'straße', 'STRASSE'],
    ['upper', true, 'TRUE'],
    ['upper', 1e21, '1E+21'],
  ],
  lower: [
    ['lower', 'ÀB', 'àb'],
    ['lower', 7, '7'],
  ],
  trim: [
    ['trim', ' \n a b\t', 'a b'],
    ['trim', '', ''],
  ],
  length: [
    ['length', 'abc', '3'],
    ['length', '👋🏽é', '3'],
    ['length', '', '0'],
    ['length', [1, [2, 3]], '2'],
    ['length', { a: 1, __proto__x: 2 }, '2'],
    ['length', parseJson('{"__proto__": 1, "toString": 2}'), '2'],
  ],
  default: [
    ["default('none')", null, 'none'],
    ["default('none')", undefined, 'none'],
    ["default('none')", '', ''],
    ["default('none')", 0, '0'],
    ["default('none')", false, 'false'],
    ['default(0)', null, '0'],
    ['default([1, 2])', null, '[1,2]'],
    ["upper | default('none')", null, 'none'],
    ["currency | default('none')", null, 'none'],
    ["length | default('none')", null, 'none'],
  ],
  json: [
    ['json', { a: [1, 'x"y', null] }, '{"a":[1,"x\\"y",null]}'],
    ['json', 'text', '"text"'],
    ['json', null, 'null'],
    ['json', big, '9007199254740993'],
    ['json', [precise, -0], '[0.1000000000000000000001,-0]'],
    ['json', new Date('2026-03-01T12:00:00Z'), '"2026-03-01T12:00:00.000Z"'],
  ],
  json_pretty: [
    ['json_pretty', nested, JSON.stringify(nested, null, 2)],
    ['json_pretty', [], '[]'],
    ['json_pretty', { n: big, p: precise }, '{\n  "n": 9007199254740993,\n  "p": 0.1000000000000000000001\n}'],
    ['json_pretty', 'a\\"', '"a\\\\\\""'],
  ],
  currency: [
    ['currency', 9000, '$90.00'],
    ['currency', 5, '$0.05'],
    ['currency', 0, '$0.00'],
    ['currency', -0, '$0.00'],
    ['currency', -123456, '-$1,234.56'],
    ['currency', '9000', '$90.00'],
    ['currency', big, '$90,071,992,547,409.93'],
    ['currency', 123456789012345678901234567890n, '$1,234,567,890,123,456,789,012,345,678.90'],
    ['currency', 1e21, '$10,000,000,000,000,000,000.00'],
    ['currency', new ExactNumber('9000.00'), '$90.00'],
    ["currency('EUR')", 9000, '€90.00'],
    ["currency('eur')", 9000, '€90.00'],
    ["currency('JPY')", 9000, '¥9,000'],
    ["currency('BHD')", 9000, 'BHD 9.000'],
    ["currency('HUF')", 9000, 'HUF 90.00'],
    ["currency('CHF')", 9000, 'CHF 90.00'],
  ],
  currency_units: [
    ['currency_units', 90, '$90.00'],
    ['currency_units', 90.5, '$90.50'],
    ['currency_units', '90.5', '$90.50'],
    ['currency_units', 1.005, '$1.01'],
    ['currency_units', -1.005, '-$1.01'],
    ['currency_units', -0.001, '$0.00'],
    ['currency_units', big, '$9,007,199,254,740,993.00'],
    ['currency_units', precise, '$0.10'],
    ["currency_units('JPY')", 90.5, '¥91'],
    ["currency_units('KWD')", 1.5, 'KWD 1.500'],
  ],
  urlencode: [
    ['urlencode', 'a b/ü?&', 'a%20b%2F%C3%BC%3F%26'],
    ['urlencode', 7, '7'],
  ],
  mask_email: [
    ['mask_email', 'ada@example.com', 'a***@example.com'],
    ['mask_email', 'a@example.com', '***@example.com'],
    ['mask_email', '"a@b"@example.com', '"***@example.com'],
    ['mask_email', '👋x@example.com', '👋***@example.com'],
    ['mask_email', 'no address', '***'],
    ['mask_email', '@example.com', '***'],
    ['mask_email', 'ada@', '***'],
    ['mask_email', '', '***'],
  ],
}

describe.each(Object.entries(table))('the filter %s', (_name, rows) => {
  it.each(rows)('%s, row %#', (filter, value, text) => {
    expect(render(`{{ value | ${filter} }}`, { value })).toBe(text)
  })
})

describe('every filter', () => {
  it('is tested here or with the dates', () => {
    expect([...createFilters().keys()].sort()).toEqual([...Object.keys(table), 'date'].sort())
  })

  it.each(['upper', 'lower', 'trim', 'length', 'currency', 'currency_units', 'date', 'urlencode', 'mask_email'])(
    '%s passes on what is absent',
    (filter) => {
      expect(render(`<{{ missing | ${filter} }}>{{ missing | ${filter} | default('x') }}`)).toBe('<>x')
    },
  )

  it.each([
    ['upper', [1], 'takes text, and was given a list'],
    ['trim', {}, 'takes text, and was given an object'],
    ['length', 7, 'takes text, a list or an object, and was given a number'],
    ['length', true, 'was given true or false'],
    ['currency', 90.5, 'takes whole minor units'],
    ['currency', '90.5', 'takes whole minor units'],
    ['currency', precise, 'takes whole minor units'],
    ['currency', 'secret-data', 'takes a number, and was given text'],
    ['currency', '0x10', 'takes a number'],
    ['currency', '', 'takes a number'],
    ['currency', true, 'takes a number, and was given true or false'],
    ['currency', new ExactNumber('1e999999999'), 'up to 100 digits'],
    ['currency_units', '9'.repeat(101), 'up to 100 digits'],
    ['currency(code)', 1, 'the currency is nothing'],
    ["currency('U' + 'SX')", 1, 'the currency is not known'],
  ])('%s refuses what it cannot work on, row %#', (filter, value, reason) => {
    const error = refusedAtRender(`{{ value | ${filter} }}`, { value })
    expect(error.reason).toContain(reason)
    expect(error.message).not.toContain('secret-data')
  })

  it('finds a wrong literal when the template is loaded', () => {
    expect(refusedAtLoad("{{ total | currency('EURO') }}").suggestion).toBe('EUR')
    expect(refusedAtLoad('{{ total | currency(5) }}').reason).toBe('the currency is a number')
  })
})

describe('a registered filter', () => {
  it('gets the value and its arguments, whole numbers as numbers', () => {
    const filters = createFilters({ cut: (value, at) => String(value).slice(0, at as number), twice: (v) => [v, v] })
    expect(render('{{ name | cut(3) | upper }} {{ name | twice }}', { name: 'Augusta' }, { filters })).toBe(
      'AUG ["Augusta","Augusta"]',
    )
  })

  it('is not given fewer arguments than it needs', () => {
    const filters = createFilters({ cut: (value, _at) => value })
    expect(refusedAtLoad('{{ name | cut }}', { filters }).reason).toContain('wrong number of arguments')
    expect(refusedAtLoad('{{ name | cut(at = 1) }}', { filters }).reason).toContain('no argument "at"')
  })

  it('that throws or answers later makes a permanent error without the data', () => {
    const cause = new Error('secret-data')
    const filters = createFilters({
      bad: () => {
        throw cause
      },
      late: () => Promise.reject(cause),
      odd: () => () => 1,
      map: () => new Map(),
    })
    const bad = refusedAtRender('{{ name | bad }}', {}, { filters })
    expect([bad.reason, bad.transient, bad.cause]).toEqual(['filter "bad" threw an error', false, cause])
    expect(bad.message).not.toContain('secret-data')
    expect(refusedAtRender('{{ name | late }}', {}, { filters }).reason).toContain('answers with a promise')
    expect(refusedAtRender('{{ name | odd }}', {}, { filters }).reason).toContain('cannot be written as text')
    expect(refusedAtRender('{{ name | map }}', {}, { filters }).reason).toContain('is no data')
  })

  it.each([
    ['upper', 'is built in'],
    ['a b', 'has a name that no template could write'],
    ['', 'has a name that no template could write'],
  ])('cannot be called %j', (name, reason) => {
    const error = thrownBy(AftercommitError, () => createFilters({ [name]: (value: unknown) => value }))
    expect(error.code).toBe('BAD_OPTION')
    expect(error.message).toContain(reason)
  })
})
