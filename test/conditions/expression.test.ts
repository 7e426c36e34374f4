import { describe, expect, it } from 'vitest'
import { ConditionError, compileExpression, createConditions, scopeOf } from '../../src/conditions/index.ts'
import { AftercommitError } from '../../src/errors.ts'
import { sampleEvent } from '../events/sample-event.ts'
import { thrownBy } from '../events/thrown.ts'

const scope = scopeOf(sampleEvent({ payload: { total: 90, customer: { id: 'c1' }, item: 'from payload' } }), {
  URL: 'x',
})

describe('an expression', () => {
  it('gives the value, whatever it is', () => {
    expect(compileExpression('customer.id').evaluate(scope)).toBe('c1')
    expect(compileExpression('customer').evaluate(scope)).toEqual({ id: 'c1' })
    expect(compileExpression('[total, missing]').evaluate(scope)).toEqual([90, null])
    expect(compileExpression('event.occurred_at').evaluate(scope)).toEqual(new Date('2026-03-01T12:00:00Z'))
    expect(compileExpression('env').evaluate(scope)).toEqual({ URL: 'x' })
  })

  it('shows the event as a whole under the names that it has in conditions', () => {
    const event = compileExpression('event').evaluate(scope)
    expect(Object.keys(event as object)).toEqual([
      'id',
      'type',
      'kind',
      'position',
      'aggregate_type',
      'aggregate_id',
      'version',
      'tenant',
      'occurred_at',
      'recorded_at',
      'metadata',
    ])
    expect(compileExpression("event['type']").evaluate(scope)).toBe('order.placed')
  })

  it('is null for a field that is absent, and throws when one is calculated with', () => {
    expect(compileExpression('missing').evaluate(scope)).toBeNull()
    const error = thrownBy(ConditionError, () => compileExpression('missing * 2').evaluate(scope))
    expect(error.message).toContain('so it has no value: missing is absent or null')
  })

  it('sees locals before fields of the payload, and nothing of their prototypes', () => {
    const item = compileExpression('item', { locals: ['item'] })
    expect(item.evaluate(scope, { item: { sku: 'a' } })).toEqual({ sku: 'a' })
    expect(item.evaluate(scope, {})).toBeNull()
    expect(item.evaluate(scope)).toBeNull()
    expect(compileExpression('toString', { locals: ['toString'] }).evaluate(scope, {})).toBeNull()
    expect(
      compileExpression('has(item) && item.sku == "a"', { locals: ['item'] }).evaluate(scope, { item: { sku: 'a' } }),
    ).toBe(true)
    expect(
      compileExpression('[1, 2].map(i, i + offset)', { locals: ['offset'] }).evaluate(scope, { offset: 5 }),
    ).toEqual([6, 7])
  })

  it('does not take a reserved name for a local', () => {
    expect(thrownBy(AftercommitError, () => compileExpression('event', { locals: ['event'] })).code).toBe('BAD_OPTION')
  })

  it('that cannot be used is refused at load', () => {
    expect(() => compileExpression('total +')).toThrow(/The expression cannot be used/)
  })
})

it('conditions made together share the variables they may read', () => {
  const conditions = createConditions({ env: ['URL'] })
  expect(conditions.expression('env.URL').evaluate(scope)).toBe('x')
  expect(() => conditions.condition("env.PASSWORD == 'x'")).toThrow(/not listed/)
})
