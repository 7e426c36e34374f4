import { describe, expect, it } from 'vitest'
import { ConditionError, compileCondition } from '../../src/conditions/index.ts'
import { thrownBy } from '../events/thrown.ts'

function mistakeIn(source: string): ConditionError {
  return thrownBy(ConditionError, () => compileCondition(source))
}

describe('a mistake', () => {
  it('is shown with its place, what follows and the nearest name', () => {
    const mistake = mistakeIn("total > 50\n  && event.aggregateType == 'order'")
    expect(mistake.code).toBe('OB002')
    expect(mistake.offset).toBe(22)
    expect(mistake.suggestion).toBe('aggregate_type')
    expect(mistake.message).toBe(
      [
        'The condition cannot be used: event has no field "aggregateType"; it has id, type, kind, position, ' +
          'aggregate_type, aggregate_id, version, tenant, occurred_at, recorded_at, metadata. ' +
          'Did you mean "aggregate_type"?',
        '',
        "  2 |   && event.aggregateType == 'order'",
        `${' '.repeat(17)}^^^^^^^^^^^^^`,
      ].join('\n'),
    )
  })

  it('in a long line is shown with its surroundings only', () => {
    const { message } = mistakeIn(`${"a == 'xxxxxxxxxx' || ".repeat(200)}b =`)
    expect(message.split('\n').at(-2)?.length).toBeLessThan(140)
    expect(message).toContain('b =')
  })

  it.each([
    ['total >', 'unexpected token: the end', 7],
    ['(total > 1', 'expected ), got the end', 10],
    ['total = 1', 'a single = compares nothing; write ==', 6],
    ['total > 1 and a', '"a" was not expected here', 10],
    ["name == 'a", 'unterminated string', 8],
    ['function == 1', 'function is a reserved word; a field of that name is payload["function"]', 0],
    ['total + 1', 'it is a number, and a condition is true or false', 0],
    ["'text'", 'it is text, and a condition is true or false', 0],
    ["1 > 'a'", '> compares a number with text', 0],
    ["event.position == 'a'", '== compares a number with text', 0],
    ["event.version in ['a']", 'in compares a number with text', 0],
    ['[1] > 2', '[1] is a list, which has no order', 0],
    ['1 && true', '1 is a number, where true or false is needed', 0],
    ["!'a'", "'a' is text, where true or false is needed", 1],
    ["-'a' == 1", "'a' is text, which has no negative", 0],
    ["a in 'abc'", 'in needs a list or an object, not text; to look within text, write text.contains(part)', 5],
    ["'abc'.x == 1", "'abc' is text, which has no field x", 6],
    ['size(1) == 1', /^size\(\) does not work on a number; it takes size\(text\)/, 0],
    ['size(a, b) == 1', /^size\(\) is not called like this/, 0],
    ['a.startsWith(1)', /^startsWith\(\) does not work on anything, a number/, 0],
    ['is_new(1)', 'is_new() is not called like this; write is_new()', 0],
    ['status_changed_to()', "status_changed_to() is not called like this; write status_changed_to('shipped')", 0],
    ["changed_to('a')", "changed_to() is not called like this; write changed_to('status', 'shipped')", 0],
    ['field_changed(5)', 'the name of a field is text, not a number', 14],
    ["event.payload == 'a'", 'event has no field "payload"; it stands by itself: payload', 6],
    ["b'a' == a", 'bytes are not supported; an event has none', 0],
    ['has(1)', 'has() asks for one field, such as has(customer.tier)', 0],
    ['has(event)', 'has() asks for one field, such as has(customer.tier)', 0],
    ['cel.bind(a, 1, a == 1)', 'there is no function bind()', 0],
  ])('%s is refused: %s', (source, problem, offset) => {
    const mistake = mistakeIn(source)
    expect(mistake.problem).toMatch(problem)
    expect(mistake.offset).toBe(offset)
  })

  it.each([
    ['is_neww()', 'is_new'],
    ["name.startWith('a')", 'startsWith'],
    ["has_fild('a')", 'has_field'],
    ['items.exsts(i, i > 1)', 'exists'],
    ['event.ocurred_at == null', 'occurred_at'],
  ])('in a name comes with a suggestion: %s → %s', (source, suggestion) => {
    expect(mistakeIn(source).suggestion).toBe(suggestion)
  })
})
