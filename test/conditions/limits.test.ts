import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConditionError, compileCondition, compileExpression, scopeOf } from '../../src/conditions/index.ts'
import { sampleEvent } from '../events/sample-event.ts'
import { thrownBy } from '../events/thrown.ts'
import { fromJson, holds, problemOf, verdictOn } from './evaluate.ts'

function refusal(source: string): string {
  return thrownBy(ConditionError, () => compileCondition(source)).problem
}

describe('a source', () => {
  it.each([
    ['parentheses', `${'('.repeat(5_000)}a`],
    ['lists', '['.repeat(9_999)],
    ['negations', `${'!'.repeat(9_999)}a`],
    ['negations with spaces and comments', `${'! //\n'.repeat(1_900)}a`],
    ['minus signs', `a == ${'-'.repeat(9_000)}1`],
    ['fields', `a${'.b'.repeat(4_000)}`],
    ['choices', `${'a ? b : '.repeat(1_000)}c`],
    ['sums', `${'a + '.repeat(2_400)}a == 1`],
    ['calls', `${'size('.repeat(1_500)}a`],
  ])('that nests too deeply in %s is refused, and the stack survives', (_what, source) => {
    expect(refusal(source)).toBe('it nests deeper than 64 levels')
  })

  it('may nest 60 levels, and may list any number of alternatives', () => {
    expect(holds(`${'('.repeat(60)}a == 1${')'.repeat(60)}`, { a: 1 })).toBe(true)
    expect(holds(`${'a == 0 || '.repeat(900)}a == 1`, { a: 1 })).toBe(true)
    expect(holds(`note == '${'-'.repeat(100)}'`, { note: '-'.repeat(100) })).toBe(true)
  })

  it('of more than 10,000 characters is refused unread, and so is an empty one', () => {
    expect(refusal(`a == '${'x'.repeat(1_000_000)}'`)).toMatch(/10000 are the most/)
    expect(refusal(' \n ')).toBe('it is empty')
  })

  it('never does anything but compile or be refused, whatever it is', () => {
    const words = [
      'a',
      '.',
      '(',
      ')',
      '[',
      ']',
      '{',
      '}',
      '!',
      '-',
      '&&',
      '||',
      '==',
      '<',
      '?',
      ':',
      ',',
      "'x'",
      '1',
      ' ',
    ]
    const calls = [
      'a.exists(b,',
      'has(',
      'size(',
      "matches('",
      '_changed_to(',
      'event',
      'payload',
      '__proto__',
      'in',
      'r"',
      '"""',
    ]
    const soup = fc.array(fc.constantFrom(...words, ...calls), { maxLength: 30 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(soup, fc.string()), (source) => {
        try {
          compileCondition(source).evaluate(scopeOf(sampleEvent({ payload: { a: [1] } }), {}))
        } catch (error) {
          expect(error).toBeInstanceOf(ConditionError)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('patterns', () => {
  it('that take for ever elsewhere are found in linear time', () => {
    const text = `${'a'.repeat(100_000)}!`
    expect(holds("text.matches('(a+)+$')", { text })).toBe(false)
    expect(holds("text.matches('(a|aa)+$')", { text })).toBe(false)
  })

  it.each([
    ["name.matches('[')", /the pattern cannot be used: missing closing/],
    ["name.matches('(?=a)')", /the pattern cannot be used/],
    ["name.matches('(a{1000}){1000}')", /the pattern cannot be used/],
    ['name.matches(pattern)', /has to be a text literal/],
    ["name.matches('a' + pattern)", /has to be a text literal/],
    ["matches(name, 'a')", /there is no function matches/],
  ])('%s is refused at load', (source, problem) => {
    expect(refusal(source)).toMatch(problem)
  })
})

describe('comprehensions', () => {
  it.each(['all', 'exists', 'exists_one', 'filter', 'map'])('do not nest: %s', (name) => {
    expect(refusal(`size(a.map(x, b.${name}(y, y == x))) > 0`)).toMatch(/every item with every other/)
  })

  it('may follow one another', () => {
    expect(holds('a.filter(x, x > 1).exists(x, x == 3)', { a: [1, 2, 3] })).toBe(true)
  })

  it('go through 10,000 items and not one more', () => {
    const items = Array.from({ length: 10_000 }, (_, at) => at)
    expect(holds('items.exists(i, i == 9999)', { items })).toBe(true)
    expect(problemOf('items.exists(i, i == 0)', { items: [...items, 10_000] })).toMatch(/10001 items/)
    const wide = Object.fromEntries(items.map((at) => [`k${at}`, at]))
    expect(holds("wide.exists(k, k == 'k9999')", { wide })).toBe(true)
    expect(problemOf("wide.exists(k, k == 'k0')", { wide: { ...wide, more: 1 } })).toMatch(/10001 items/)
  })

  it('cannot hide a square within a linear operator', () => {
    const items = Array.from({ length: 10_000 }, (_, at) => at)
    const payload = { items, others: items.map((at) => -at - 1), text: 'x'.repeat(100_000) }
    for (const source of [
      'items.exists(i, i in others)',
      "items.exists(i, text.contains('y'))",
      "items.all(i, !text.matches('y'))",
    ]) {
      expect(problemOf(source, payload)).toMatch(/too many steps/)
      expect(problemOf(`${source} || true`, payload)).toMatch(/too many steps/)
    }
  })

  const many = Array.from({ length: 10_000 }, (_, at) => ({ sku: `s${at}` }))
  const half = 'x'.repeat(400_000)

  it.each([
    ['text that is joined', 'items.map(i, prefix + i.sku).exists(t, t == prefix)', /too much text/],
    ['text that is joined and let go', "items.exists(i, (prefix + i.sku).endsWith('y'))", /too much text/],
    ['text in capitals', "items.exists(i, (prefix).upperAscii() == 'y')", /too much text|too many steps/],
    ['parts of text', "items.map(i, prefix.substring(0, 1000)).exists(t, t == 'y')", /too much text|too many steps/],
    ['pieces of text', "items.map(i, prefix.split('x')).exists(t, t == [])", /too much text|too many steps|10000/],
    ['joined lists', "items.map(i, list.join('')).exists(t, t == 'y')", /too much text|too many steps/],
  ])('cannot fill the memory with %s', (_, source, problem) => {
    const list = Array.from({ length: 100 }, () => 'x'.repeat(4_000))
    expect(problemOf(source, { items: many, prefix: half, list })).toMatch(problem)
  })

  it.each([
    ['the same start', 'items.exists(i, !one.startsWith(other))'],
    ['the same end', 'items.exists(i, !one.endsWith(other))'],
    ['equality', 'items.exists(i, one != other)'],
    ['order', 'items.exists(i, one < other)'],
    ['membership', 'items.exists(i, !(one in [other]))'],
    ['equality of lists', 'items.exists(i, [one] != [other])'],
    ['the fields of objects', 'items.exists(i, size(wide) == 0)'],
    ['equality of objects', 'items.exists(i, wide != wider)'],
    ['a pattern of many states', "items.exists(i, text.matches('[^y]{1,500}y'))"],
  ])('pay for %s by its length', (_, source) => {
    const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, at]))
    const payload = {
      ...{ items: many, one: half, other: `${half}`.concat('').split('').join(''), wide },
      ...{ wider: { ...wide }, text: 'x'.repeat(1_000) },
    }
    expect(problemOf(source, payload)).toMatch(/too many steps/)
  })

  const digits = '3'.repeat(100_000)

  it.each([
    ['sums', 'items.exists(i, big + i.n == 5)'],
    ['products', 'items.exists(i, big * i.n == 5)'],
    ['quotients', 'items.exists(i, big / 3 == i.n)'],
    ['negations', 'items.exists(i, -big == i.n)'],
    ['equality', 'items.exists(i, big == i.n)'],
    ['order', 'items.exists(i, big < i.n)'],
    ['order of fractions', 'items.exists(i, fraction > half)'],
    ['text', "items.exists(i, string(big) == 'x')"],
    ['times', 'items.exists(i, timestamp(big) < event.occurred_at)'],
    ['places', "items.exists(i, 'abc'.substring(big) == 'x')"],
    ['sums of a thousand digits', 'items.exists(i, long + i.n == 5)'],
    ['products of a thousand digits', 'items.exists(i, long * i.n == 5)'],
    ['text of a thousand digits', "items.exists(i, string(long) == 'x')"],
  ])('pay for the digits of numbers in %s', (_, source) => {
    const numbers = `"big": ${digits}, "long": ${'7'.repeat(999)}, "fraction": 0.${digits}, "half": 0.${digits}5`
    const items = JSON.stringify(Array.from({ length: 10_000 }, (_, n) => ({ n })))
    expect(problemOf(source, fromJson(`{"items": ${items}, ${numbers}}`))).toMatch(/too many steps/)
  })

  it('look at a number of many digits once', () => {
    const payload = fromJson(`{"big": ${digits}, "bigger": ${digits}5}`)
    expect(holds(`big > 5 && big < bigger && string(big) == '' + string(big) && big == big`, payload)).toBe(true)
  })

  it.each([
    ['that come with items', 'items.exists(i, timestamp(at).getHours(i.sku) == 30 || false)'],
    ['that are one long text', 'items.exists(i, timestamp(at).getHours(half) == 30 || false)'],
  ])('pay for time zones %s', (_, source) => {
    const payload = { items: many, at: '2026-03-01T12:00:00Z', half }
    expect(problemOf(source, payload)).toMatch(/too many steps|no such time zone/)
  })

  it('that spent their budget leave nothing of it to what is compiled and evaluated next', () => {
    const payload = { items: many, one: half, other: half.split('').join('') }
    expect(problemOf('items.exists(i, one != other)', payload)).toMatch(/too many steps/)
    const digits = '9'.repeat(200)
    expect(holds(`a < ${digits}.${digits}`, { a: 1 })).toBe(true)
  })

  it('may put together what a large order needs', () => {
    const payload = { items: many, prefix: 'a prefix of some length, as orders have them: ' }
    expect(holds("items.map(i, prefix + i.sku).exists(t, t.endsWith('s9999'))", payload)).toBe(true)
    expect(holds("items.exists(i, i.sku.matches('^s99+$'))", payload)).toBe(true)
  })

  it('do not name their item like something of the event', () => {
    expect(refusal('a.exists(event, event == 1)')).toMatch(/reserved name/)
    expect(refusal('a.exists(b.c, true)')).toMatch(/iteration variable/)
    expect(refusal('a.exists(b)')).toMatch(/takes a name and an expression/)
  })
})

describe('values', () => {
  it('that grow beyond reason are an error', () => {
    const text = 'x'.repeat(400_000)
    expect(problemOf('size(text + text + text) > 0', { text })).toMatch(/more than 1000000 characters/)
    const list = Array.from({ length: 6_000 }, () => 1)
    expect(problemOf('size(list + list) > 0', { list })).toMatch(/more than 10000 items/)
    expect(problemOf("size(text.split('')) > 0", { text })).toMatch(/more than 10000 items/)
  })

  it('may be large where they are only looked at', () => {
    const list = Array.from({ length: 1_000_000 }, (_, at) => at)
    expect(holds('999999 in list && size(list) == 1000000', { list })).toBe(true)
    const wide = Object.fromEntries(list.slice(0, 100_000).map((at) => [`k${at}`, at]))
    expect(holds("'k99999' in wide && wide.k5 == 5 && wide == other", { wide, other: { ...wide } })).toBe(true)
  })
})

describe('nothing outside of the scope', () => {
  it.each([
    'has(payload.__proto__)',
    'has(payload.constructor)',
    'has(payload.toString)',
    'has(payload.hasOwnProperty)',
    'has(items.length)',
    'has(event.metadata.constructor)',
    "payload['__proto__'] != null",
    'payload.constructor.constructor != null',
    "'__proto__' in payload",
    "has_field('__proto__.polluted')",
    'env.PATH != null',
    'has(env.toString)',
    'toString != null',
    'globalThis != null',
    'process.env.PATH != null',
  ])('is reached by %s', (source) => {
    expect(verdictOn(source, { items: [] }).holds).toBe(false)
  })

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])(
    'but a field called %s is read',
    (name) => {
      const payload = fromJson(`{"${name}": {"x": 1}, "nested": {"${name}": 2}}`)
      expect(holds(`has(payload.${name}) && payload.${name}.x == 1 && nested.${name} == 2`, payload)).toBe(true)
      expect(holds(`payload == {'${name}': {'x': 1}, 'nested': {'${name}': 2}}`, payload)).toBe(true)
      expect(({} as Record<string, unknown>).x).toBeUndefined()
    },
  )

  it('of the environment is seen but what is listed', () => {
    const scope = scopeOf(sampleEvent(), { SHOP_URL: 'https://shop.example' })
    expect(compileCondition("env.SHOP_URL == 'https://shop.example'").evaluate(scope).holds).toBe(true)
    expect(compileCondition('env.PATH == null').evaluate(scope).holds).toBe(true)
    const mistake = thrownBy(ConditionError, () => compileCondition("env.SHOP_URI == 'x'", { env: ['SHOP_URL'] }))
    expect(mistake.suggestion).toBe('SHOP_URL')
  })

  it('is inside an exact number or a time', () => {
    const payload = fromJson('{"exact": 1e400}')
    expect(problemOf("exact.text == '1e400'", payload)).toMatch(/a number has no fields/)
    expect(verdictOn("text == '1e400'", fromJson('1e400'))).toEqual({ holds: false })
  })
})

const conditions = [
  'a > 1 && b == c || !d',
  "a.b.c[0].d != 'x' && size(a) > 2",
  'a.exists(x, x.b > c) || a.all(x, x == b)',
  'a + b * c - d / a > b % c',
  "a.startsWith('x') || string(b) + string(c) == 'y' || b in a || a in [b, c]",
  'timestamp(a) - duration(b) > event.occurred_at',
  "field_changed('a') && changed_to('b', c) && has(a.b) && has_field('c.d')",
  "a.matches('x+') ? b : c",
  '{a: b} == c || [a, b] == c || a[b] == c',
].map((source) => ({ compiled: compileCondition(source), expression: compileExpression(source) }))

describe('whatever a payload holds', () => {
  const json = fc.jsonValue({ maxDepth: 4 })
  const field = fc.oneof(json, fc.bigInt(), fc.constantFrom('2026-03-01T12:00:00Z', '1h', 'xx', '__proto__'))
  const payloads = fc.oneof(json, fc.record({ a: field, b: field, c: field, d: field }, { requiredKeys: [] }))

  it('a condition gives a verdict, an explanation, and throws nothing', () => {
    fc.assert(
      fc.property(payloads, fc.boolean(), (payload, hasChanges) => {
        const changes = hasChanges ? { a: { old: 1, new: payload } } : null
        const scope = scopeOf(sampleEvent({ payload, changes }), {})
        for (const { compiled } of conditions) {
          const verdict = compiled.evaluate(scope)
          expect(typeof verdict.holds).toBe('boolean')
          expect(compiled.explain(scope).verdict.holds).toBe(verdict.holds)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('an expression gives a value or throws a ConditionError', () => {
    fc.assert(
      fc.property(payloads, (payload) => {
        const scope = scopeOf(sampleEvent({ payload }), {})
        for (const { expression } of conditions) {
          try {
            expect(expression.evaluate(scope)).toBeDefined()
          } catch (error) {
            expect(error).toBeInstanceOf(ConditionError)
          }
        }
      }),
    )
  })

  it('even a getter that throws is an error of the condition', () => {
    const payload = Object.defineProperty({}, 'total', {
      enumerable: true,
      get: () => {
        throw new Error('private')
      },
    })
    expect(problemOf('total > 5', payload)).toBe('the payload cannot be read')
  })
})
