import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileExpression, scopeOf } from '../../src/conditions/index.ts'
import {
  add,
  compareNumbers,
  multiply,
  type Numeric,
  parseNumber,
  remainder,
  subtract,
} from '../../src/conditions/numbers.ts'
import { ExactNumber, parseJson } from '../../src/events/index.ts'
import { sampleEvent } from '../events/sample-event.ts'
import { fromJson, holds, problemOf } from './evaluate.ts'

describe('numbers', () => {
  it('are compared by value and not by how they are written', () => {
    expect(holds('total == 100.0 && total == 1e2 && total == 0x64 && total == 100u', { total: 100 })).toBe(true)
  })

  it('keep the digits that a double would lose', () => {
    const payload = fromJson('{"big": 9007199254740993, "fine": 0.1000000000000000000001, "huge": 1e400}')
    expect(holds('big == 9007199254740993', payload)).toBe(true)
    expect(holds('big == 9007199254740992', payload)).toBe(false)
    expect(holds('big > 9007199254740992 && big < 9007199254740994', payload)).toBe(true)
    expect(holds('fine > 0.1 && fine == 0.1000000000000000000001', payload)).toBe(true)
    expect(holds('fine != 0.1000000000000000000002', payload)).toBe(true)
    expect(holds('huge > 1e308 && -huge < 0', payload)).toBe(true)
    expect(holds('big in [9007199254740992]', payload)).toBe(false)
    expect(
      holds("changed_to('big', 9007199254740993)", {}, { changes: { big: { old: 1, new: 9007199254740993n } } }),
    ).toBe(true)
  })

  it('are calculated with as decimals', () => {
    expect(holds('a + b == 0.3 && a * 3 == b + a && 1.1 * 1.1 == 1.21', { a: 0.1, b: 0.2 })).toBe(true)
    expect(holds('big * big == 81129638414606699710187514626049', { big: 9007199254740993n })).toBe(true)
    expect(holds('big + 1 == 9007199254740994', { big: 9007199254740993n })).toBe(true)
    expect(holds('7 / 2 == 3.5 && 0.6 / 0.2 == 3 && 7 % 3 == 1 && -7 % 3 == -1 && 0.75 % 0.5 == 0.25', {})).toBe(true)
  })

  it.each([
    '9223372036854775807 + 1 == 9223372036854775808',
    '-9223372036854775808 - 1 == -9223372036854775809',
    '9223372036854775807 * 9223372036854775807 == 85070591730234615847396907784232501249',
    'last + 1 > last && last + 1 == 9223372036854775808',
    '-first == 9223372036854775808 && first - 1 < first',
    'sum == 18446744073709551616 && sum - last == 9223372036854775809',
  ])('have no 64-bit limit, on purpose, unlike in the CEL specification: %s', (source) => {
    const payload = { last: 2n ** 63n - 1n, first: -(2n ** 63n), sum: 2n ** 64n }
    expect(holds(source, payload)).toBe(true)
  })

  it('that would take too many digits are an error', () => {
    expect(problemOf('huge + 1 > 0', { huge: new ExactNumber('1e100000') })).toMatch(/too many digits/)
    expect(problemOf('huge * huge > 0', { huge: 10n ** 900n + 1n })).toMatch(/too many digits/)
    expect(holds('huge > 1', { huge: new ExactNumber('1e99999999999999999999') })).toBe(true)
  })

  it('are given back in the form that holds them', () => {
    const value = (source: string) => compileExpression(source).evaluate(scopeOf(sampleEvent({ payload: {} }), {}))
    expect(value('1 + 1')).toBe(2)
    expect(value('9007199254740992 + 1')).toBe(9007199254740993n)
    expect(String(value('0.1000000000000000000001 * 2'))).toBe('0.2000000000000000000002')
    expect(value('1 / 3')).toBe(1 / 3)
  })
})

const decimals = fc.tuple(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), fc.integer({ min: 0, max: 25 }))

/** A decimal as JSON text, and the whole number that it is after 25 places. */
function toText([digits, places]: [bigint, number]): { text: string; scaled: bigint } {
  return { text: `${digits}e-${places}`, scaled: digits * 10n ** BigInt(25 - places) }
}

describe('any two decimals', () => {
  const number = (text: string) => parseJson(text) as Numeric
  it('compare as they do on paper', () => {
    fc.assert(
      fc.property(decimals, decimals, (one, other) => {
        const [a, b] = [toText(one), toText(other)]
        const order = Math.sign(compareNumbers(number(a.text), number(b.text)))
        expect(order).toBe(a.scaled === b.scaled ? 0 : a.scaled > b.scaled ? 1 : -1)
      }),
    )
  })

  it('add, subtract, multiply and divide with a rest as they do on paper', () => {
    fc.assert(
      fc.property(decimals, decimals, (one, other) => {
        const [a, b] = [toText(one), toText(other)]
        const [x, y] = [number(a.text), number(b.text)]
        const same = (value: Numeric | undefined, scaled: bigint, at = 25) =>
          expect(compareNumbers(value!, parseNumber(`${scaled}e-${at}`))).toBe(0)
        same(add(x, y), a.scaled + b.scaled)
        same(subtract(x, y), a.scaled - b.scaled)
        same(multiply(x, y), a.scaled * b.scaled, 50)
        if (b.scaled !== 0n) same(remainder(x, y), a.scaled % b.scaled)
      }),
    )
  })

  it('in a payload are ordered by a condition as they are on paper', () => {
    fc.assert(
      fc.property(decimals, decimals, (one, other) => {
        const [a, b] = [toText(one), toText(other)]
        const payload = fromJson(`{"a": ${a.text}, "b": ${b.text}}`)
        expect(holds('a < b', payload)).toBe(a.scaled < b.scaled)
        expect(holds('a == b', payload)).toBe(a.scaled === b.scaled)
      }),
    )
  })
})
