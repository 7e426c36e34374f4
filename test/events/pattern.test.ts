import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../src/errors.ts'
import { baseName, boundsOf, compilePatterns, patternsToSql } from '../../src/events/index.ts'
import { names, patterns } from './pattern-samples.ts'
import { thrownBy } from './thrown.ts'

describe('patterns', () => {
  it.each([
    [
      'order.placed',
      ['order.placed', 'order.placed.v1', 'order.placed.v22'],
      ['order', 'order.placed.late', 'order.place'],
    ],
    [
      'order.*',
      ['order.placed', 'order.shipped', 'order.placed.v2'],
      ['order', 'order.v2', 'order.item.added', 'orders.placed'],
    ],
    ['*.created', ['order.created', 'user.created.v1'], ['created', 'a.b.created']],
    ['order_*', ['order_created', 'order_', 'order_created.v1'], ['order', 'orders_created', 'order_created.late']],
    ['*_created', ['order_created', '_created'], ['order_created_late', 'order.x_created']],
    ['order.**', ['order', 'order.placed', 'order.item.added', 'order.v3'], ['orders', 'my.order']],
    ['**.added', ['added', 'item.added', 'order.item.added'], ['added.late']],
    ['a.**.z', ['a.z', 'a.b.z', 'a.b.c.z', 'a.z.z'], ['a', 'z', 'a.b', 'b.a.z']],
    ['**', ['a', 'a.b', 'a.b.c.v1'], []],
    ['*', ['a', 'a.b', 'a.b.c'], []],
    ['session.created.v1', ['session.created', 'session.created.v1', 'session.created.v2'], ['session.v1']],
  ])('%s chooses what it should', (pattern, chosen, others) => {
    const matches = compilePatterns([pattern])
    expect(chosen.filter((name) => !matches(name))).toEqual([])
    expect(others.filter(matches)).toEqual([])
  })

  it('choose an event when any of them does', () => {
    const matches = compilePatterns(['order.placed', 'invoice.*', 'user.**'])
    expect(['order.placed', 'invoice.paid', 'user', 'user.a.b', 'order.paid'].map(matches)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ])
  })

  it.each([
    [''],
    ['Order.*'],
    ['a..b'],
    ['.a'],
    ['a.'],
    ['a.**b'],
    ['***'],
    ['a b'],
    ["a'"],
    ['a\nb'],
    ['ä'],
    ['a'.repeat(201)],
  ])('refuses %j', (pattern) => {
    expect(thrownBy(AftercommitError, () => compilePatterns([pattern])).code).toBe('BAD_PATTERN')
    expect(thrownBy(AftercommitError, () => patternsToSql([pattern])).code).toBe('BAD_PATTERN')
  })

  it('refuses text and whatever else is no list, and shows the list', () => {
    for (const compile of [compilePatterns, patternsToSql] as ((given: never) => unknown)[]) {
      const { code, message } = thrownBy(AftercommitError, () => compile('order.*' as never))
      expect({ code, message }).toEqual({ code: 'BAD_PATTERN', message: expect.stringContaining('["order.*"]') })
      for (const given of [null, 5, { 0: 'order.*' }]) {
        expect(thrownBy(AftercommitError, () => compile(given as never)).code).toBe('BAD_PATTERN')
      }
    }
  })

  it('refuses an empty list, which could never match', () => {
    expect(() => compilePatterns([])).toThrow('Name at least one')
  })

  it('reports every bad pattern and suggests lower case', () => {
    const { message } = thrownBy(AftercommitError, () => compilePatterns(['Order.*', 'fine.*', 'x**']))
    expect(message).toContain('Did you mean "order.*"?')
    expect(message).toContain('"x**" is not a pattern: ** must be a whole segment')
    expect(message.split('\n')).toHaveLength(2)
  })

  it('agree with a plain recursive definition', () => {
    fc.assert(
      fc.property(patterns, names, (pattern, name) => {
        expect(compilePatterns([pattern])(name)).toBe(matchesByDefinition(pattern, name))
      }),
      { numRuns: 3000 },
    )
  })

  it('choose the same events as the regular expression for Postgres', () => {
    fc.assert(
      fc.property(fc.array(patterns, { minLength: 1, maxLength: 3 }), names, (list, name) => {
        expect(new RegExp(patternsToSql(list)).test(name)).toBe(compilePatterns(list)(name))
      }),
      { numRuns: 3000 },
    )
  })

  it('choose no event outside of their bounds', () => {
    fc.assert(
      fc.property(fc.array(patterns, { minLength: 1, maxLength: 3 }), names, (list, name) => {
        const bounds = boundsOf(list)
        const isWithin = !bounds || bounds.names.includes(name) || bounds.prefixes.some((one) => name.startsWith(one))
        expect(isWithin || !compilePatterns(list)(name)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  it('are bounded by names and by what stands before the first wildcard', () => {
    expect(boundsOf(['order.placed', 'lamp.*', 'a.**', 'c_*.x'])).toEqual({
      names: ['order.placed'],
      prefixes: ['order.placed.v', 'lamp.', 'a', 'c_'],
    })
    expect(boundsOf(['order.placed', '*.placed'])).toBeUndefined()
    expect(boundsOf(['*'])).toBeUndefined()
  })

  it('take a bounded number of steps on the worst pattern there is', () => {
    const worst = `${'a*'.repeat(99)}b`
    const matches = compilePatterns([worst, `${'**.a*.'.repeat(30)}b`])
    // With backtracking this would not end in a lifetime; the runner's own time limit is the judge.
    expect(matches('a'.repeat(20_000))).toBe(false)
    expect(matches('a.'.repeat(2_000))).toBe(false)
  })
})

/** The rule as a specification: slow, recursive and obvious. */
function matchesByDefinition(pattern: string, name: string): boolean {
  if (pattern === '*') return true
  return segmentsMatch(baseName(pattern).split('.'), baseName(name).split('.'))
}

function segmentsMatch([first, ...rest]: string[], name: string[]): boolean {
  if (first === undefined) return name.length === 0
  if (first === '**') return name.concat('').some((_, skipped) => segmentsMatch(rest, name.slice(skipped)))
  return name.length > 0 && charactersMatch(first, name[0]!) && segmentsMatch(rest, name.slice(1))
}

function charactersMatch(pattern: string, text: string): boolean {
  if (pattern === '') return text === ''
  if (pattern[0] === '*')
    return [...text, ''].some((_, skipped) => charactersMatch(pattern.slice(1), text.slice(skipped)))
  return text[0] === pattern[0] && charactersMatch(pattern.slice(1), text.slice(1))
}
