import { describe, expect, it } from 'vitest'
import { ConditionError, compileCondition } from '../../src/conditions/index.ts'
import { thrownBy } from '../events/thrown.ts'
import { holds, problemOf } from './evaluate.ts'

const changes = { status: { old: 'pending', new: 'shipped' } }
const order = { status: 'shipped', total: 100.0, customer: { tier: 'premium' } }

describe('a condition', () => {
  const cases: [source: string, expected: boolean][] = [
    ["status == 'shipped'", true],
    ["status == 'pending'", false],
    ["status != 'pending'", true],
    ["status != 'shipped'", false],
    ['total > 50', true],
    ['total >= 100', true],
    ['total > 100', false],
    ['total < 200', true],
    ['total <= 99.99', false],
    ["customer.tier == 'premium'", true],
    ["field_changed('status')", true],
    ["field_changed('total')", false],
    ["status_changed_to('shipped')", true],
    ["status_changed_to('pending')", false],
    ["status_changed_from('pending')", true],
    ["status_changed_from('shipped')", false],
    ["status_changed_to('shipped') && total > 50", true],
    ["status_changed_to('shipped') && total > 200", false],
    ["status == 'shipped' || status == 'delivered'", true],
    ["status == 'pending' || status == 'canceled'", false],
  ]
  it.each(cases)('%s is %s', (source, expected) => {
    expect(holds(source, order, { changes })).toBe(expected)
  })

  it('that is not one is refused before any event comes', () => {
    expect(() => compileCondition('invalid syntax here')).toThrow(ConditionError)
  })
})

describe('precedence', () => {
  it('of && is above ||, and parentheses and ! are understood', () => {
    expect(holds('a || b && c', { a: true, b: true, c: false })).toBe(true)
    expect(holds('(a || b) && c', { a: true, b: true, c: false })).toBe(false)
    expect(holds('!a || c', { a: false, c: false })).toBe(true)
    expect(holds('!(a == 1 || a == 2)', { a: 3 })).toBe(true)
  })

  it('leaves operators within text alone', () => {
    expect(holds("note == 'a && b || c > d == e'", { note: 'a && b || c > d == e' })).toBe(true)
  })
})

describe('questions about changes', () => {
  const ask = (source: string, fields: object) => holds(source, {}, fields)
  const edits = {
    priority: { old: 'low', new: 'high' },
    count: { old: 1, new: 2 },
    paid: { old: false, new: true },
    note: { old: 'x', new: null },
    label: { old: 'y', new: '' },
    field: { old: 1, new: 2 },
  }
  it.each([
    "priority_changed_to('high')",
    "priority_changed_from('low')",
    'priority_changed()',
    'count_changed_to(2)',
    'count_changed_to(2.0)',
    'count_changed_from(1)',
    'paid_changed_to(true)',
    'note_changed_to(null)',
    "label_changed_to('')",
    "changed_to('count', 1 + 1)",
    "changed_from('paid', false)",
    "field_changed_to('priority', 'high')",
    "field_changed_from('priority', 'low')",
    'field_changed_to(2)',
    'field_changed()',
    "!field_changed('total')",
    'note_changed_to(missing)',
  ])('%s', (source) => {
    expect(ask(source, { changes: edits })).toBe(true)
  })

  it.each(["field_changed('status')", "changed_to('status', 'shipped')", 'status_changed()'])(
    '%s is an error, not false, for an event without changes',
    (source) => {
      expect(problemOf(source, { status: 'shipped' }, { changes: null })).toMatch(/carries no changes/)
    },
  )

  it('are not fooled by names that every object has', () => {
    expect(ask("field_changed('constructor')", { changes: edits })).toBe(false)
    expect(ask('toString_changed()', { changes: edits })).toBe(false)
  })
})

describe('questions about the event', () => {
  it('is_new and is_deleted go by its kind, whether or not it carries changes', () => {
    for (const changes of [null, {}]) {
      expect(holds('is_new()', {}, { type: 'order.created', changes })).toBe(true)
      expect(holds('is_new()', {}, { type: 'order.deleted', changes })).toBe(false)
      expect(holds('is_new()', {}, { type: 'order.updated', changes })).toBe(false)
      expect(holds('is_deleted()', {}, { type: 'order.deleted', changes })).toBe(true)
    }
  })

  it('has_field follows a path through objects and lists, and null counts as there', () => {
    const payload = { a: { b: [{ c: null }] } }
    expect(holds("has_field('a.b')", payload)).toBe(true)
    expect(holds("has_field('a.b.0.c')", payload)).toBe(true)
    expect(holds("has_field('a.b.1.c')", payload)).toBe(false)
    expect(holds("has_field('a.b.length')", payload)).toBe(false)
    expect(holds("has_field('a.toString')", payload)).toBe(false)
  })
})

describe('names', () => {
  it('that are reserved win over fields of the payload, which are reached through payload', () => {
    const payload = { event: 'mine', payload: 'mine', env: 'mine' }
    expect(holds("event.type == 'order.placed' && payload.event == 'mine' && payload.env == 'mine'", payload)).toBe(
      true,
    )
  })

  it('of the event are in snake case and say what they are', () => {
    const source = `event.id == '0198c2f4-3e12-7abc-9def-1e2345678901' && event.kind == 'custom' && event.position == 42
      && event.aggregate_type == 'order' && event.aggregate_id == '7' && event.version == null && event.tenant == null
      && event.metadata.correlation_id == 'corr-1' && event.metadata.region == 'secret-region'
      && event.metadata.schema_version == 1 && event.metadata.depth == 0 && event.metadata.causation_id == null`
    expect(holds(source, {})).toBe(true)
  })

  it('changes and previous show what was there before', () => {
    const fields = { changes, previous: { status: 'pending' } }
    expect(holds("changes.status.new == 'shipped' && previous.status == 'pending'", {}, fields)).toBe(true)
  })

  it('that are no identifiers are reached by index', () => {
    const payload = { 'a-b': 1, in: 2, function: 3, 'ünï code': 4 }
    expect(
      holds(
        "payload['a-b'] == 1 && payload['in'] == 2 && payload['function'] == 3 && payload['ünï code'] == 4",
        payload,
      ),
    ).toBe(true)
  })
})

describe('functions', () => {
  it.each([
    'size(items) == 2',
    'items.size() == 2',
    "size('héllo🎉') == 6",
    "name.startsWith('Ada') && name.endsWith('lace') && name.contains('Love')",
    "name.lowerAscii() == 'ada lovelace' && 'straße'.upperAscii() == 'STRAßE'",
    "name.substring(4) == 'Lovelace' && name.substring(0, 3) == 'Ada' && '🎉ab'.substring(1, 2) == 'a'",
    "name.indexOf('Love') == 4 && '🎉ab'.indexOf('a') == 1 && name.indexOf('x') == -1",
    "name.split(' ') == ['Ada', 'Lovelace'] && ['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
    "'  a '.trim() == 'a'",
    "string(12.5) == '12.5' && string(true) == 'true' && int('12') == 12 && double('1.5') == 1.5 && int(-7.9) == -7",
    "bool('true') && !bool('false')",
    "'sku-2' in items.map(i, i.sku)",
    "items.filter(i, i.quantity > 1).map(i, i.sku) == ['sku-2']",
    "items.map(i, i.quantity > 1, i.sku) == ['sku-2']",
    'items.all(i, i.quantity > 0) && items.exists(i, i.quantity == 5) && items.exists_one(i, i.quantity == 1)',
    "options.exists(key, key == 'express')",
    "'express' in options && !('slow' in options) && !('toString' in options)",
    "items[1].sku == 'sku-2' && options['express']",
    "name.matches('^Ada .*lace$') && name.matches('Love') && !name.matches('^Love')",
    "(total > 50 ? 'large' : 'small') == 'large'",
    "{'a': 1, 'b': [2]} == {'b': [2.0], 'a': 1}",
    '[1, 2] + [3] == [1, 2, 3] && "a" + "b" == "ab"',
  ])('%s', (source) => {
    const items = [
      { sku: 'sku-1', quantity: 1 },
      { sku: 'sku-2', quantity: 5 },
    ]
    expect(holds(source, { name: 'Ada Lovelace', total: 60, items, options: { express: true } })).toBe(true)
  })

  it('know no time of their own, so that an event is always judged alike', () => {
    expect(thrownBy(ConditionError, () => compileCondition('now() > event.occurred_at')).problem).toMatch(
      /no function now/,
    )
  })
})
