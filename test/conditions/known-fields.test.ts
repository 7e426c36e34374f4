import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ConditionError, compileCondition, knownFieldsOf, mergeFields, scopeOf } from '../../src/conditions/index.ts'
import { sampleEvent } from '../events/sample-event.ts'
import { thrownBy } from '../events/thrown.ts'

const Address = z.object({ zip: z.string() })
const Order = z.object({
  total: z.number(),
  status: z.enum(['pending', 'shipped']),
  gift: z.boolean().optional(),
  note: z.string().nullable(),
  customer: z.object({ tier: z.string(), address: Address.optional() }),
  items: z.array(z.object({ sku: z.string(), quantity: z.int() })),
  extra: z.looseObject({ known: z.string() }),
  placed: z.date(),
  ref: z.union([z.string(), z.number()]),
})
const fields = knownFieldsOf(Order)

describe('where the schema of an event is known', () => {
  it.each([
    "total > 50 && status == 'shipped' && gift && note == null && note != 'x'",
    "customer.tier == 'gold' && customer.address.zip == '1'",
    "items.exists(i, i.sku == 'a' && i.quantity > 1) && items[0].sku == 'a'",
    "items.filter(i, i.quantity > 1).exists(i, i.sku == 'a')",
    "extra.known == 'a' && extra.anything == 5",
    "placed == 'anything goes' || ref == 1 || ref == 'a'",
    "payload.total > 5 && payload['undeclared'] == 1",
    "status_changed_to('shipped') && changed_to('total', 5) && has(customer.tier) && has_field('customer.address.zip')",
    'note_changed_to(null) && changes.whatever.new == 1 && previous.whatever == 1',
  ])('%s is accepted', (source) => {
    expect(fields).toBeDefined()
    const verdict = compileCondition(source, { fields }).evaluate(scopeOf(sampleEvent({ payload: {} }), {}))
    expect(typeof verdict.holds).toBe('boolean')
  })

  it.each([
    ['totl > 50', 'the event has no field "totl"', 'total'],
    ['payload.totl > 50', 'the event has no field "totl"', 'total'],
    ["customer.teir == 'gold'", 'the event has no field "teir"', 'tier'],
    ["customer.address.zp == '1'", 'the event has no field "zp"', 'zip'],
    ["items.exists(i, i.skuu == 'a')", 'the event has no field "skuu"', 'sku'],
    ["items[0].skuu == 'a'", 'the event has no field "skuu"', 'sku'],
    ["statsu_changed_to('shipped')", 'the event has no field "statsu"', 'status'],
    ["field_changed('statsu')", 'the event has no field "statsu"', 'status'],
    ["has_field('customer.teir')", 'the event has no field "teir"', 'tier'],
    ['has(customer.teir)', 'the event has no field "teir"', 'tier'],
    ['has(totl)', 'the event has no field "totl"', 'total'],
    ['evnt == 1', 'the event has no field "evnt"', 'event'],
    ["total == '50'", '== compares a number with text', undefined],
    ["total > 'a'", '> compares a number with text', undefined],
    ['note > 5', '> compares text with a number', undefined],
    ['status_changed_to(5)', 'status is text and never a number', undefined],
    ['total.cents > 5', 'total is a number, which has no field cents', undefined],
    ['total && gift', 'total is a number, where true or false is needed', undefined],
    ["total.startsWith('a')", 'startsWith() does not work on a number, text', undefined],
    ["total.matches('a')", 'matches() works on text, and total is a number', undefined],
    ['customer > 5', 'customer is an object, which has no order', undefined],
    ['total.exists(i, i > 5)', 'total is a number, where a list is needed', undefined],
    ["total + status == 'a'", '+ does not work on a number and text', undefined],
    ["items.exists(i, i.quantity == 'a')", '== compares a number with text', undefined],
    ['status', 'it is text, and a condition is true or false', undefined],
    ['ref == true', '== compares text or a number with true or false', undefined],
  ])('%s is refused at load', (source, problem, suggestion) => {
    const mistake = thrownBy(ConditionError, () => compileCondition(source, { fields }))
    expect(mistake.problem).toContain(problem)
    expect(mistake.suggestion).toBe(suggestion)
  })

  it('is known from Zod and ArkType, and unknown for a library that does not tell', () => {
    expect([...(knownFieldsOf(type({ total: 'number', 'note?': 'string | null' }))?.byName ?? [])]).toEqual([
      ['total', { kinds: ['number'] }],
      ['note', { kinds: ['text'] }],
    ])
    expect(knownFieldsOf(v.object({ total: v.number() }))).toBeUndefined()
    expect(knownFieldsOf(z.string())).toBeUndefined()
    expect(compileCondition('anything.goes == 1', { fields: undefined }).source).toBe('anything.goes == 1')
  })

  it('survives a schema that contains itself', () => {
    const Node = z.object({
      name: z.string(),
      get child() {
        return Node.optional()
      },
    })
    const known = knownFieldsOf(Node)
    expect(() => compileCondition("child.child.name == 'a'", { fields: known })).not.toThrow()
    expect(() => compileCondition("child.child.nam == 'a'", { fields: known })).toThrow(/Did you mean "name"/)
  })

  it('survives a schema whose converter throws', () => {
    const standard = {
      ...z.object({})['~standard'],
      jsonSchema: {
        output: () => {
          throw new Error('no')
        },
      },
    }
    expect(knownFieldsOf({ '~standard': standard } as never)).toBeUndefined()
  })

  it('is merged over several events: a field that one of them has is known', () => {
    const refund = knownFieldsOf(z.object({ total: z.string(), reason: z.string() }))
    const both = mergeFields([fields, refund])
    expect(() => compileCondition("reason == 'x' && total == 5 && total == '5'", { fields: both })).not.toThrow()
    expect(() => compileCondition('reasn == 1', { fields: both })).toThrow(/Did you mean "reason"/)
    expect(mergeFields([fields, undefined])).toBeUndefined()
    expect(mergeFields([])).toBeUndefined()
  })
})
