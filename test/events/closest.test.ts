import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closest, editDistance } from '../../src/events/closest.ts'

describe('the closest word', () => {
  it.each([
    ['migrte', 'migrate'],
    ['migrate', 'migrate'],
    ['MIGRATE', 'migrate'],
    ['mirgate', 'migrate'],
    ['dcotor', 'doctor'],
  ])('for %s is %s', (word, expected) => {
    expect(closest(word, ['start', 'migrate', 'doctor'])).toBe(expected)
  })

  it('is nothing when nothing is near', () => {
    expect(closest('completely.different', ['start', 'migrate'])).toBeUndefined()
    expect(closest('x', [])).toBeUndefined()
    expect(closest('foo', ['log'])).toBeUndefined()
    expect(closest('lgo', ['log'])).toBe('log')
  })

  it('is not looked for when the word is absurdly long', () => {
    expect(closest('a'.repeat(100_000), ['a'.repeat(100_000)])).toBeUndefined()
  })

  it.each([
    ['', 'abc', 3],
    ['abc', 'acb', 1],
    ['abc', 'abc', 0],
    ['kitten', 'sitting', 3],
  ])('counts the edits from %j to %j as %i', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance)
  })

  it('counts the same in both directions and never more than the longer word', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (one, other) => {
        expect(editDistance(one, other)).toBe(editDistance(other, one))
        expect(editDistance(one, other)).toBeLessThanOrEqual(Math.max(one.length, other.length))
      }),
    )
  })
})
