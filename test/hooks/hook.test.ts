import { describe, expect, it } from 'vitest'
import { type HookOptions, isEnabled, toHook } from '../../src/hooks/hook.ts'
import { testEvent } from '../../src/testing/index.ts'

const hook = (options: Partial<HookOptions>) => toHook({ name: 'h', scope: 'instance', handle() {}, ...options })

describe('the filter of a hook', () => {
  const order = { type: 'order', id: '1' }
  const events = {
    created: testEvent('order.created', { aggregate: order }),
    updated: testEvent('order.updated', { aggregate: order }),
    deleted: testEvent('order.deleted', { aggregate: order }),
    placed: testEvent('order.placed', { aggregate: order }),
    user: testEvent('user.created', { aggregate: { type: 'user', id: '1' } }),
    login: testEvent('auth.login'),
    bare: testEvent('lamp.lit'),
  }
  const chosen = (options: Partial<HookOptions>) =>
    Object.entries(events)
      .filter(([, event]) => hook(options).matches(event))
      .map(([name]) => name)

  it.each<[string, Partial<HookOptions>, string[]]>([
    ['nothing: everything', {}, Object.keys(events)],
    ['an empty list of types: everything', { types: [] }, Object.keys(events)],
    ['one type', { types: ['order.placed'] }, ['placed']],
    ['a pattern', { types: ['order.*'] }, ['created', 'updated', 'deleted', 'placed']],
    ['auth', { types: ['auth.*'] }, ['login']],
    ['kinds', { kinds: ['created', 'deleted'] }, ['created', 'deleted', 'user']],
    ['custom', { kinds: ['custom'] }, ['placed', 'login', 'bare']],
    ['entities', { entities: ['user'] }, ['user']],
    ['all three', { types: ['*.created'], kinds: ['created'], entities: ['order'] }, ['created']],
    ['what excludes itself', { types: ['order.placed'], kinds: ['created'] }, []],
  ])('by %s', (_, options, expected) => {
    expect(chosen(options)).toEqual(expected)
  })
})

describe('a hook', () => {
  it.each<[string, Partial<HookOptions>, string]>([
    ['a name', { name: '' }, 'name'],
    ['a scope', { scope: 'process' as never }, 'scope'],
    ['a handler', { handle: 'no' as never }, 'handle'],
    ['kinds that exist', { kinds: ['changed' as never] }, 'changed'],
    ['a concurrency', { concurrency: 0 }, 'concurrency'],
    ['a maxWait that is not shorter', { debounce: { wait: '2s', maxWait: '1s' } }, 'maxWait'],
    ['durations', { timeout: '30' }, 'timeout'],
    ['patterns', { types: ['Order.*'] }, 'order.*'],
    ['debounce only in an instance', { scope: 'cluster', debounce: '1s' }, 'debounce'],
    ['a transaction only in a cluster', { transactional: true }, 'transactional'],
  ])('needs %s', (_, options, message) => {
    expect(() => hook(options)).toThrow(message)
  })

  it('has 30 s, the aggregate as its key, and waits at most ten times its debounce', () => {
    const made = hook({ debounce: '200ms' })
    expect(made.timeoutMs).toBe(30_000)
    expect(made.keyOf(testEvent('order.placed', { aggregate: { type: 'order', id: '1' } }))).toBe('order/1')
    expect(made.settling).toEqual({ latestWins: true, waitMs: 200, maxWaitMs: 2_000 })
  })

  it.each([
    ['key', 'a promise', () => hook({ key: (async () => 'k') as never }).keyOf(testEvent('order.placed'))],
    ['key', 'undefined', () => hook({ key: (() => undefined) as never }).keyOf(testEvent('order.placed'))],
    [
      'enabled',
      'a promise',
      () => isEnabled({ name: 'h', scope: 'instance', handle() {}, enabled: (async () => true) as never }),
    ],
  ])('refuses a `%s` that returns %s', (name, answer, ask) => {
    expect(ask).toThrow(`\`${name}\` of hook "h" returned ${answer}`)
  })
})
