import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileGlob, meansEverything, toKeyChoice } from '../../src/cache/index.ts'
import { escapeFor } from '../../src/observers/templates/escape.ts'

describe('a pattern of keys', () => {
  it.each([
    ['product:*', 'product:7', true],
    ['product:*', 'product:', true],
    ['product:*', 'a product:7', false],
    ['*:7', 'product:7', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['a[bc]d', 'acd', true],
    ['a[bc]d', 'aed', false],
    ['a[^bc]d', 'aed', true],
    ['a[b-d]e', 'ace', true],
    ['a[d-b]e', 'ace', true],
    ['a[b', 'ab', true],
    ['a\\*', 'a*', true],
    ['a\\*', 'ab', false],
    ['[\\]]', ']', true],
    ['**', '', true],
    ['', '', true],
    ['', 'a', false],
    ['a*b*c', 'axxbyyc', true],
    ['a*b*c', 'axxbyy', false],
  ])('%j fits %j: %j', (pattern, key, fits) => {
    expect(compileGlob(pattern)(key)).toBe(fits)
  })

  it('takes no longer for one that was made to take long', () => {
    expect(compileGlob(`${'a*'.repeat(1_000)}b`)('a'.repeat(5_000))).toBe(false)
  })

  it('is one key when nothing in it works as a pattern', () => {
    expect(toKeyChoice('product:7')).toEqual({ key: 'product:7' })
    expect(toKeyChoice('a\\*b')).toEqual({ key: 'a*b' })
    expect(toKeyChoice('a\\\\*')).toEqual({ pattern: 'a\\\\*' })
  })

  it('means everything when no character is certain', () => {
    for (const pattern of ['*', '**', '?*', '[a-z]*', '[^a]*', '*[\\]]']) expect(meansEverything(pattern)).toBe(true)
    for (const pattern of ['a*', '*:', '\\**', '[a]b']) expect(meansEverything(pattern)).toBe(false)
  })

  it('takes a value for what it is, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '*', '?', '[', ']', '\\', '^', '-') }), (value) => {
        const written = `user:${escapeFor('glob', value)}`
        expect(toKeyChoice(written)).toEqual({ key: `user:${value}` })
        expect(compileGlob(`${written}:*`)(`user:${value}:x`)).toBe(true)
        expect(compileGlob(written)(`user:${value}`)).toBe(true)
        expect(compileGlob(`${written}:*`)('user:other:x')).toBe(value === 'other')
      }),
    )
  })
})
