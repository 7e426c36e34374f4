import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/index.ts'
import { createObserverExecutor, type TestEventInput, testEvent } from '../../src/testing/index.ts'

/** Through the whole executor: true and false are what the observer did, an error is the code of its dead letter. */
async function ask(condition: string, input: TestEventInput, type = 'order.updated') {
  const executor = createObserverExecutor({
    config: { observers: { rule: { on: '*', condition, actions: [{ type: 'log' }] } } },
  })
  const results = await executor.process(testEvent(type, input))
  const [letter] = await executor.deadLetters.list()
  return letter?.error.code ?? results.rule !== undefined
}

const payload = (payload: unknown) => ({ payload })
const toShipped = {
  payload: { status: 'shipped', total: 100 },
  changes: { status: { old: 'pending', new: 'shipped' } },
}

describe('conditions on the payload', () => {
  it.each([
    ["status == 'shipped'", true],
    ["status == 'pending'", false],
    ["status != 'pending'", true],
    ["status != 'shipped'", false],
    ["status == 'shipped' || status == 'delivered'", true],
    ["status == 'pending' || status == 'canceled'", false],
    ["customer.tier == 'premium'", true],
    ['total > 50', true],
    ['total >= 100', true],
    ['total > 100', false],
    ['total < 200', true],
  ])('%s is %s', async (condition, expected) => {
    expect(await ask(condition, payload({ status: 'shipped', total: 100, customer: { tier: 'premium' } }))).toBe(
      expected,
    )
  })

  it('refuses what is no condition when it is loaded, before any event', async () => {
    const executor = createObserverExecutor({
      config: { observers: { rule: { on: '*', condition: 'invalid syntax here', actions: [{ type: 'log' }] } } },
    })
    await expect(executor.ready()).rejects.toThrow(/observer "rule".*condition/)
    await expect(executor.process(testEvent('a.b'))).rejects.toThrow(/condition/)
  })
})

describe('conditions on what changed', () => {
  it.each([
    ["field_changed('status')", true],
    ["field_changed('total')", false],
    ["status_changed_to('shipped')", true],
    ["status_changed_to('pending')", false],
    ["status_changed_from('pending')", true],
    ["status_changed_from('shipped')", false],
    ["status_changed_to('shipped') && total > 50", true],
  ])('%s is %s', async (condition, expected) => {
    expect(await ask(condition, toShipped)).toBe(expected)
  })
})

describe('operators', () => {
  it('a question about changes does not hide what stands beside it', async () => {
    expect(await ask("status_changed_to('shipped') && total > 200", toShipped)).toBe(false)
    expect(await ask("total > 200 || status_changed_to('shipped')", toShipped)).toBe(true)
  })

  it('and binds more tightly than or, not more tightly than both, and parentheses than all', async () => {
    const flags = payload({ a: true, b: false, c: false })
    expect(await ask('a || b && c', flags)).toBe(true)
    expect(await ask('(a || b) && c', flags)).toBe(false)
    expect(await ask('!a || a', flags)).toBe(true)
    expect(await ask('!(a || b)', flags)).toBe(false)
    expect(await ask('1 == 1 || a == 2 && b', payload({ a: 1, b: false }))).toBe(true)
  })

  it('an operator in quotes is text', async () => {
    expect(await ask("name == 'a && b || c == d'", payload({ name: 'a && b || c == d' }))).toBe(true)
  })
})

describe('questions about any field and any value', () => {
  const change = (old: unknown, next: unknown) => ({ payload: {}, changes: { priority: { old, new: next } } })

  it.each([
    ["priority_changed_to('high')", change('low', 'high')],
    ['priority_changed_to(3)', change(1, 3)],
    ['priority_changed_to(true)', change(false, true)],
    ['priority_changed_to(null)', change('low', null)],
    ["priority_changed_to('')", change('low', '')],
    ['priority_changed_from(1)', change(1, 3)],
    ["changed_to('priority', 3.0)", change(1, 3)],
  ])('%s holds', async (condition, input) => {
    expect(await ask(condition, input)).toBe(true)
  })
})

describe('what kind of event it is', () => {
  it('is new when it was created, whatever it carries', async () => {
    expect(await ask('is_new()', payload({}), 'order.created')).toBe(true)
    expect(await ask('is_new()', payload({}), 'order.updated')).toBe(false)
    expect(await ask('is_new()', payload({}), 'order.deleted')).toBe(false)
    expect(await ask('is_deleted()', payload({}), 'order.deleted')).toBe(true)
  })

  it('an event without changes cannot say what changed: that is a failure, and not a no', async () => {
    expect(await ask("field_changed('status')", payload({ status: 'shipped' }))).toBe('OB002')
  })
})

describe('fields that are not there', () => {
  it('are null when they are compared for being equal', async () => {
    expect(await ask('note == null', payload({}))).toBe(true)
    expect(await ask("x != 'a'", payload({}))).toBe(true)
    expect(await ask("x == 'a'", payload({}))).toBe(false)
  })

  it('a condition without an answer is a dead letter, and its action does not run', async () => {
    expect(await ask('total > 50', payload({ total: 'many' }))).toBe('OB002')
  })
})

describe('numbers', () => {
  it('are equal by value, however they are written', async () => {
    expect(await ask('total == 100', payload(parseJson('{"total": 100.0}')))).toBe(true)
    expect(await ask('total == 100.0', payload({ total: 100 }))).toBe(true)
    expect(await ask('total == 1e2', payload({ total: 100 }))).toBe(true)
  })

  it('keep every digit beyond what a double can hold', async () => {
    const exact = payload(parseJson('{"id": 9007199254740993, "price": 0.10000000000000000001}'))
    expect(await ask('id == 9007199254740993', exact)).toBe(true)
    expect(await ask('id == 9007199254740992', exact)).toBe(false)
    expect(await ask('price > 0.1', exact)).toBe(true)
  })
})
