import { describe, expect, it } from 'vitest'
import { compileCondition, scopeOf } from '../../src/conditions/index.ts'
import { sampleEvent } from '../events/sample-event.ts'
import { holds, problemOf, verdictOn } from './evaluate.ts'

describe('an absent field', () => {
  it.each(['note == null', "note != 'a'", "customer.tier != 'gold'", 'items[3].sku == null', '!(note == 1)'])(
    'is null for == and !=: %s holds',
    (source) => {
      expect(holds(source, {})).toBe(true)
      expect(verdictOn("note == 'a'", {})).toEqual({ holds: false })
    },
  )

  it.each([
    ['total > 50', 'total'],
    ['50 < total', 'total'],
    ['total + 1 > 50', 'total'],
    ['-total < 0', 'total'],
    ['customer.age >= 18', 'customer.age'],
    ["name.startsWith('a')", 'name'],
    ["name.matches('a')", 'name'],
    ['size(items) > 0', 'items'],
    ['items.exists(i, i > 1)', 'items'],
    ["'a' in tags", 'tags'],
    ['gift', 'gift'],
    ['!gift', 'gift'],
    ['gift ? true : true', 'gift'],
    ['!(total > 50)', 'total'],
    ['(a + b) * 2 > 1', 'a'],
    ['(2 * (a + 1)) > total', 'a'],
    ['true && total > 50', 'total'],
    ['false || total > 50', 'total'],
  ])('anywhere else means that %s does not hold, and %s is named', (source, absent) => {
    expect(verdictOn(source, {})).toEqual({ holds: false, absent })
  })

  it('and one that is null are the same', () => {
    expect(verdictOn('total > 50', { total: null })).toEqual({ holds: false, absent: 'total' })
    expect(verdictOn('customer.age > 50', { customer: null })).toEqual({ holds: false, absent: 'customer.age' })
  })

  it('does not matter where the other side of || or && settles it', () => {
    expect(verdictOn('missing > 1 || total > 50', { total: 60 })).toEqual({ holds: true })
    expect(verdictOn('total > 50 || missing > 1', { total: 60 })).toEqual({ holds: true })
    expect(verdictOn('missing > 1 && total > 50', { total: 6 })).toEqual({ holds: false })
    expect(verdictOn('items.exists(i, i.price > 5)', { items: [{}, { price: 6 }] })).toEqual({ holds: true })
    expect(verdictOn('items.all(i, i.price > 5)', { items: [{}, { price: 6 }] })).toEqual({
      holds: false,
      absent: 'i.price',
    })
  })

  it('is an error in strict conditions, but not for == and !=', () => {
    const strict = (source: string) =>
      compileCondition(source, { strict: true }).evaluate(scopeOf(sampleEvent({ payload: {} }), {}))
    expect(strict('note == null')).toEqual({ holds: true })
    for (const source of ['total > 50', 'gift']) {
      const verdict = strict(source)
      expect(verdict.holds ? undefined : verdict.error?.code).toBe('OB002')
      expect(verdict.holds ? undefined : verdict.error?.problem).toMatch(/absent or null/)
    }
  })

  it('is everything in a payload that is no object', () => {
    for (const payload of [null, 5, 'text', [1, 2], true]) {
      expect(verdictOn('total > 50', payload)).toEqual({ holds: false, absent: 'total' })
    }
  })

  it('is not there for has(), nor is a field of something absent', () => {
    expect(holds('has(a.b)', { a: { b: null } })).toBe(true)
    expect(holds('has(a.b)', { a: {} })).toBe(false)
    expect(holds('has(a.b)', {})).toBe(false)
    expect(holds('has(total) && !has(note)', { total: null })).toBe(true)
    expect(holds("has(payload['a-b'])", { 'a-b': 1 })).toBe(true)
  })
})

describe('what cannot be evaluated', () => {
  it.each([
    ["total > '50'", { total: 5 }, /a number and text have no order/],
    ['total > 50', { total: '60' }, /text and a number have no order/],
    ['items > 50', { items: [] }, /a list and a number have no order/],
    ['name.length > 5', { name: 'Ada' }, /text has no fields/],
    ['total / 0 > 1', { total: 5 }, /division by zero/],
    ['total % 0 == 1', { total: 5 }, /division by zero/],
    ['total', { total: 5 }, /a number, and a condition is true or false/],
    ['total && true', { total: 5 }, /a number, where true or false is needed/],
    ["'a' in name", { name: 'abc' }, /in needs a list or an object/],
    ['items[name] == 1', { items: [1], name: 'a' }, /whole number/],
    ['items[-1] == 1', { items: [1] }, /whole number/],
    ['name + other == 1', { name: 'a', other: 1 }, /does not work on text and a number; write string/],
    ['int(name) == 1', { name: 'one' }, /not a whole number/],
    ['name.substring(9) == "a"', { name: 'abc' }, /outside of the text/],
  ])('%s is a visible error', (source, payload, problem) => {
    expect(problemOf(source, payload)).toMatch(problem)
  })

  it('says so without showing anything of the payload', () => {
    const verdict = verdictOn("note > 5 || note.matches('x') || note.startsWith('p') && note + 1 == 2", {
      note: 'private',
    })
    expect(verdict.holds).toBe(false)
    expect(JSON.stringify(verdict) + (verdict.holds ? '' : verdict.error?.message)).not.toContain('private')
  })

  it('is absorbed where the other side of || settles it', () => {
    expect(verdictOn('total / 0 > 1 || total == 5', { total: 5 })).toEqual({ holds: true })
  })
})
