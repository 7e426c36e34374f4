import { expect, it } from 'vitest'
import { compileCondition, scopeOf } from '../../src/conditions/index.ts'
import { sampleEvent } from '../events/sample-event.ts'

it('an explanation shows the value of every part in the order of the source', () => {
  const source = "total > 1000 && (customer.tier == 'gold' || missing > 2) && !(total / 0 > 1)"
  const scope = scopeOf(sampleEvent({ payload: { total: 90, customer: { tier: 'silver' } } }), {})
  const { verdict, parts } = compileCondition(source).explain(scope)
  expect(verdict).toEqual({ holds: false })
  expect(parts.map(({ source: text, start, end, ...outcome }) => [text, outcome])).toEqual([
    [source, { value: false }],
    ['total > 1000', { value: false }],
    ['total', { value: 90 }],
    ["customer.tier == 'gold' || missing > 2", { absent: 'missing' }],
    ["customer.tier == 'gold'", { value: false }],
    ['customer.tier', { value: 'silver' }],
    ['customer', { value: { tier: 'silver' } }],
    ['missing > 2', { absent: 'missing' }],
    ['missing', { value: undefined }],
    ['!(total / 0 > 1)', { error: 'division by zero' }],
    ['total / 0 > 1', { error: 'division by zero' }],
    ['total / 0', { error: 'division by zero' }],
    ['total', { value: 90 }],
  ])
  for (const part of parts) expect(source.slice(part.start, part.end)).toBe(part.source)
})

it('an explanation shows a comprehension as a whole, since its body has a value per item', () => {
  const scope = scopeOf(sampleEvent({ payload: { items: [{ price: 5 }] } }), {})
  const { parts } = compileCondition('items.exists(i, i.price > 4)').explain(scope)
  expect(parts.map(({ source, value }) => [source, value])).toEqual([
    ['items.exists(i, i.price > 4)', true],
    ['items', [{ price: 5 }]],
  ])
})

it('an explanation does a bounded amount of work, and the verdict does not suffer from it', () => {
  const items = Array.from({ length: 10_000 }, (_, at) => at)
  const source = Array.from({ length: 100 }, () => 'items.exists(i, i == 9999)').join(' && ')
  const { verdict, parts } = compileCondition(`(${source}) || true`).explain(
    scopeOf(sampleEvent({ payload: { items } }), {}),
  )
  expect(verdict.holds).toBe(true)
  expect(parts.some(({ error }) => error === 'it takes too many steps for this event')).toBe(true)
})
