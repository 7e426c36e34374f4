import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { ExactNumber, JsonError, parseJson, stringifyJson } from '../../src/events/index.ts'
import { thrownBy } from './thrown.ts'

const refusal = (value: unknown, limits = {}) => thrownBy(JsonError, () => stringifyJson(value, limits))
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

describe('parseJson', () => {
  it.each([
    ['90', 90],
    ['-0', -0],
    ['0.1', 0.1],
    ['1.10', 1.1],
    ['1e21', 1e21],
    ['1E+2', 100],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['5e-324', 5e-324],
    ['9007199254740992', 2 ** 53],
    ['1000000000000000000000', 1e21],
    ['9007199254740993', 9007199254740993n],
    // A double has this very value, but JSON.stringify would write it as …6000.
    ['-9223372036854775808', -9223372036854775808n],
    ['-9223372036854775807', -9223372036854775807n],
    ['123456789012345678901234567890', 123456789012345678901234567890n],
    ['0.100000000000000000000000000001', new ExactNumber('0.100000000000000000000000000001')],
    ['1e400', new ExactNumber('1e400')],
    ['1e-400', new ExactNumber('1e-400')],
  ])('reads %s without loss, alone and within other values', (text, value) => {
    expect(parseJson(text)).toEqual(value)
    expect(parseJson(`{"a":[${text} , "x"],"b":${text}}`)).toEqual({ a: [value, 'x'], b: value })
    expect(stringifyJson(parseJson(` [ ${text} ] `))).toBe(stringifyJson([value]))
  })

  it('keeps an exponent that would fill the memory as text', () => {
    const text = '1e999999999999999999999'
    expect(parseJson(text)).toEqual(new ExactNumber(text))
  })

  it('gives what JSON.parse gives whenever no number is lost', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('reads everything around an exact number as JSON.parse does', () => {
    const exact = '12345678901234567890'
    fc.assert(
      fc.property(fc.json(), fc.string({ unit: 'binary' }), (text, key) => {
        const whole = `[${text}, {"x": ${exact}, ${JSON.stringify(key)}: ${text}}]`
        expect(parseJson(whole)).toEqual(withBigint(JSON.parse(whole)))
      }),
    )
  })

  it('writes back every number as the value it read', () => {
    const digits = fc.stringMatching(/^(0|[1-9]\d{0,40})$/)
    const number = fc.tuple(
      fc.constantFrom('', '-'),
      digits,
      fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,40}$/)),
      fc.oneof(fc.constant(''), fc.stringMatching(/^[eE][+-]?\d{1,3}$/)),
    )
    fc.assert(
      fc.property(
        number.map((parts) => parts.join('')),
        (text) => {
          const value = parseJson(text)
          const written = stringifyJson(value)
          if (typeof value !== 'number') expect(written).toBe(text)
          else expect(decimalValue(written)).toEqual(decimalValue(text))
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('is not misled by digits within strings', () => {
    const texts = ['{"card":"1234567890123456789","n":1}', '["\\"12345678901234567890",2]', '{"id":"1, 1e999","n":1.5}']
    for (const text of texts) expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it.each([
    '{"__proto__":{"polluted":1},"a":1}',
    '{"__proto__":{"polluted":1},"a":12345678901234567890}',
    '{"a":{"__proto__":{"__proto__":12345678901234567890}},"constructor":{"prototype":1},"toString":null}',
  ])('keeps odd keys as own properties: %s', (text) => {
    const value = parseJson(text)
    expect(stringifyJson(value)).toBe(text)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect('polluted' in {}).toBe(false)
  })

  it('reads nesting that plain SQL may have written, and refuses what would overflow somebody', () => {
    expect(stringifyJson(parseJson(nested(1000)), { maxDepth: 1000 })).toBe(nested(1000))
    for (const depth of [1001, 10_000, 1_000_000]) {
      const error = thrownBy(JsonError, () => parseJson(nested(depth)))
      expect(error.code).toBe('PAYLOAD_TOO_DEEP')
    }
    expect(thrownBy(JsonError, () => parseJson('{"a":'.repeat(1_000_000))).code).toBe('PAYLOAD_TOO_DEEP')
    expect(thrownBy(JsonError, () => parseJson('[[1]]', { maxDepth: 1 })).code).toBe('PAYLOAD_TOO_DEEP')
  })

  it('does not count brackets within strings as nesting', () => {
    const text = JSON.stringify({ text: '['.repeat(5000) })
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it.each([
    '',
    '{',
    '{"secret":tru}',
    '["secret" 12345678901234567890]',
    '"secret',
    '12345678901234567890x',
    '1e',
    '[1e9999',
  ])('refuses %j without quoting it', (text) => {
    const error = thrownBy(JsonError, () => parseJson(text))
    expect(error.code).toBe('BAD_JSON')
    expect(error.message).not.toContain('secret')
    expect(error.cause).toBeUndefined()
  })

  it('reads integers of up to a thousand digits as bigint, and keeps longer ones as text', () => {
    const [long, longer] = ['7'.repeat(1_000), '7'.repeat(1_001)]
    expect(parseJson(long)).toBe(BigInt(long))
    expect(parseJson(longer)).toEqual(new ExactNumber(longer))
    expect(stringifyJson(parseJson(`[${longer}]`))).toBe(`[${longer}]`)
  })

  it('takes a million items and a hundred thousand keys', () => {
    const items = `[12345678901234567890${',1'.repeat(1_000_000)}]`
    expect(parseJson(items)).toHaveLength(1_000_001)
    const keys = JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`k${n}`, n])))
    expect(Object.keys(parseJson(keys) as object)).toHaveLength(100_000)
  })
})

describe('stringifyJson', () => {
  it('writes what JSON.stringify writes for every ordinary value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        fc.pre(!/\\u(?:0000|d[89a-f])/.test(JSON.stringify(value)) && !hasNegativeZero(value))
        expect(stringifyJson(value)).toBe(JSON.stringify(value))
      }),
    )
  })

  it('writes the same by its quick and its careful way', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!/\\u(?:0000|d[89a-f])/.test(JSON.stringify(value)))
        // The bigint sends the whole value the careful way.
        expect(stringifyJson([value, 1n])).toBe(`[${stringifyJson(value)},1]`)
      }),
    )
  })

  it('reads back what it wrote', () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: 'medium' }), (value) => {
        fc.pre(!/\\u(?:0000|d[89a-f])/.test(JSON.stringify(value)))
        expect(parseJson(stringifyJson(value))).toEqual(value)
      }),
    )
  })

  it.each([
    [{ n: 9007199254740993n }, '{"n":9007199254740993}'],
    [{ n: new ExactNumber('0.100000000000000000000000000001') }, '{"n":0.100000000000000000000000000001}'],
    [[-0, 0], '[-0,0]'],
    [{ at: new Date(0), gone: undefined }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [{ toJSON: () => ({ n: 1n }) }, '{"n":1}'],
    [{ a: { toJSON: (key: string) => key } }, '{"a":"a"}'],
    [Object.assign([1, 2], { toJSON: () => 'list' }), '"list"'],
    [Object.create(null, { a: { value: 1, enumerable: true } }), '{"a":1}'],
    [
      new (class Point {
        x = 1
        y = 2
      })(),
      '{"x":1,"y":2}',
    ],
    [Buffer.from('ab'), '{"type":"Buffer","data":[97,98]}'],
    ['\u0001\\u0000 \\ud800 🙂\u2028', '"\\u0001\\\\u0000 \\\\ud800 🙂\u2028"'],
    [null, 'null'],
  ])('writes case %# as it should', (value, text) => {
    expect(stringifyJson(value)).toBe(text)
  })

  it.each([
    [{ items: [{}, {}, {}, { name: 'a\0b' }] }, 'payload.items[3].name', 'U+0000'],
    [{ 'a\0b': 1 }, 'payload', 'a key with U+0000'],
    [{ deep: { '\ud800': 1 } }, 'payload.deep', 'a key with half of a surrogate pair'],
    [['x', '\udc00'], 'payload[1]', 'half of a surrogate pair'],
    [{ 'odd key': Number.NaN }, 'payload["odd key"]', 'NaN'],
    [{ n: Number.POSITIVE_INFINITY }, 'payload.n', 'Infinity'],
    [undefined, 'payload', 'undefined'],
    [[1, undefined], 'payload[1]', 'undefined'],
    [new Array(1), 'payload[0]', 'undefined'],
    [{ f: () => 1 }, 'payload.f', 'a function'],
    [{ s: Symbol('x') }, 'payload.s', 'a symbol'],
    [{ at: new Date(Number.NaN) }, 'payload.at', 'an invalid date'],
    [{ m: new Map() }, 'payload.m', 'a Map'],
    [{ m: new Set() }, 'payload.m', 'a Set'],
    [{ m: new Error('x') }, 'payload.m', 'a Error'],
    [{ m: new Uint8Array(1) }, 'payload.m', 'a Uint8Array'],
    [{ m: Object(1) }, 'payload.m', 'a Number'],
    [{ n: new ExactNumber('1e131072') }, 'payload.n', 'beyond what Postgres can keep'],
    [{ n: new ExactNumber('1e-16384') }, 'payload.n', 'beyond what Postgres can keep'],
    [{ t: { toJSON: () => Number.NaN } }, 'payload.t', 'NaN'],
  ])('refuses case %# and names the place', (value, path, reason) => {
    const error = refusal(value)
    expect(error.code).toBe('BAD_JSON')
    expect(error.path).toBe(path)
    expect(error.reason).toContain(reason)
    expect(error.message).toContain('Nothing was written.')
  })

  it('refuses a value that contains itself, but not one that repeats a part', () => {
    const loop: { part: object; self?: unknown } = { part: {} }
    expect(stringifyJson([loop.part, loop.part, 1n])).toBe('[{},{},1]')
    loop.self = loop
    expect(refusal(loop)).toMatchObject({ code: 'BAD_JSON', path: 'payload.self', reason: 'contains itself' })
  })

  it('refuses nesting beyond the limit, however deep', () => {
    const limit = (depth: number) => JSON.parse(nested(depth))
    expect(stringifyJson(limit(64))).toBe(nested(64))
    for (const depth of [65, 100, 10_000, 1_000_000]) expect(refusal(limit(depth)).code).toBe('PAYLOAD_TOO_DEEP')
    expect(refusal(limit(3), { maxDepth: 2, name: 'changes' }).path).toBe('changes[0][0]')
  })

  it('counts bytes, not characters', () => {
    expect(stringifyJson('é'.repeat(4), { maxBytes: 10 })).toHaveLength(6)
    expect(refusal('é'.repeat(5), { maxBytes: 10 })).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', path: 'payload' })
    expect(refusal('x'.repeat(2 ** 20)).code).toBe('PAYLOAD_TOO_LARGE')
    expect(stringifyJson('x'.repeat(2 ** 20 - 2))).toHaveLength(2 ** 20)
  })

  it('gives up early on a value that multiplies itself', () => {
    let bomb: unknown = ['lol', null, 1]
    for (let level = 0; level < 40; level++) bomb = [bomb, bomb, bomb, bomb, bomb, bomb, bomb, bomb]
    // Written out it would have 8^40 items; the runner's own time limit is the judge.
    expect(refusal(bomb).code).toBe('PAYLOAD_TOO_LARGE')
  })

  it('never shows a value, and cuts long keys', () => {
    const error = refusal({ [`secret\n${'k'.repeat(500)}`]: { v: 'secret-value\0' } })
    expect(error.message).not.toContain('secret-value')
    expect(error.message.length).toBeLessThan(250)
    expect(error.message).not.toContain('\n')
  })
})

describe('ExactNumber', () => {
  it('refuses text that is not a JSON number', () => {
    for (const text of ['', '01', '1.', '.5', '+1', '1e', 'NaN', '1\n', '0x10']) {
      expect(() => new ExactNumber(text)).toThrow(AftercommitError)
    }
  })

  it('is refused by JSON.stringify instead of rounded', () => {
    const number = new ExactNumber('1e400')
    expect(() => JSON.stringify({ number })).toThrow('stringifyJson')
    expect(`${number}`).toBe('1e400')
    expect(new ExactNumber('0.1000000000000000000001').toNumber()).toBe(0.1)
  })
})

function withBigint(value: unknown): unknown {
  const list = value as [unknown, Record<string, unknown>]
  if (list[1].x === Number('12345678901234567890')) list[1].x = 12345678901234567890n
  return list
}

/** The value of a decimal as a fraction of bigints in lowest powers of ten. */
function decimalValue(text: string): { digits: bigint; power: bigint } {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  let digits = BigInt(whole.replace('-', '') + fraction) * (text.startsWith('-') ? -1n : 1n)
  let power = BigInt(exponent.replace('+', '')) - BigInt(fraction.length)
  while (digits !== 0n && digits % 10n === 0n) {
    digits /= 10n
    power++
  }
  return { digits, power: digits === 0n ? 0n : power }
}

function hasNegativeZero(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0)
  return Object.values(value).some(hasNegativeZero)
}
