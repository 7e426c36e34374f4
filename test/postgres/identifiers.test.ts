import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { quoteIdentifier, quoteLiteral, schemaName, shorten } from '../../src/postgres/index.ts'

describe('quoting', () => {
  test('an identifier keeps its case and doubles its quotes', () => {
    expect(quoteIdentifier('Weird "x"; drop')).toBe('"Weird ""x""; drop"')
  })

  test('a literal doubles quotes and escapes backslashes', () => {
    expect(quoteLiteral("it's")).toBe("'it''s'")
    expect(quoteLiteral("a\\'b")).toBe("E'a\\\\''b'")
  })

  test('no text can end its own quotes', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(quoteIdentifier(text).slice(1, -1).replaceAll('""', '')).not.toContain('"')
        expect(quoteLiteral(text).replace(/^E/, '').slice(1, -1).replaceAll("''", '')).not.toContain("'")
      }),
    )
  })
})

describe('a schema name', () => {
  test('names its channel after itself', () => {
    expect(schemaName('aftercommit')).toMatchObject({ quoted: '"aftercommit"', channel: 'aftercommit_bell' })
  })

  test('of the greatest length still has a channel of its own', () => {
    const one = schemaName(`${'x'.repeat(62)}1`).channel
    const two = schemaName(`${'x'.repeat(62)}2`).channel
    expect(one).not.toBe(two)
    expect(Buffer.byteLength(one)).toBeLessThanOrEqual(63)
  })

  test('is cut between characters, not inside one', () => {
    const channel = schemaName('é'.repeat(31)).channel
    expect(Buffer.byteLength(channel)).toBeLessThanOrEqual(63)
    expect(channel).not.toContain('\ufffd')
  })

  test('keeps the lock keys of two schemas apart', () => {
    expect(schemaName('a').lockKey('b:c')).not.toBe(schemaName('a":"b').lockKey('c'))
  })

  test.each([
    ['', 'empty'],
    ['x'.repeat(64), '63 bytes'],
    ['é'.repeat(32), '63 bytes'],
    ['a\u0000b', 'cannot hold'],
    ['a\ud800', 'cannot hold'],
    ['a$$b', 'dollar'],
    ['pg_mine', 'reserved'],
    ['information_schema', 'reserved'],
  ])('%j is refused', (name, reason) => {
    expect(() => schemaName(name)).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
    expect(() => schemaName(name)).toThrow(reason)
  })

  test('a short identifier is left alone', () => {
    expect(shorten('orders_idx')).toBe('orders_idx')
  })
})
