import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ConfigError, toSettings } from '../../../src/configuration/index.ts'
import { defineEvents } from '../../../src/events/index.ts'
import {
  type ActionOptions,
  checkOnlyPorts,
  loadConfigurationFile,
  type ObserverOptions,
  toObserverConfig,
} from '../../../src/observers/index.ts'

const events = defineEvents({ 'order.placed': z.object({ total: z.number() }) })
const ports = { ...checkOnlyPorts({}), events }
const log: ActionOptions = { type: 'log', message: 'hi' }

function add(name: string, options: ObserverOptions) {
  return toObserverConfig(name, options, toSettings({}), ports)
}

function mistakesOf(name: string, options: unknown) {
  try {
    add(name, options as ObserverOptions)
  } catch (error) {
    return (error as ConfigError).mistakes.map(({ where, path, message }) => [where, path, message])
  }
  return []
}

describe('an observer in TypeScript', () => {
  it('becomes what the same observer in the file becomes', async () => {
    const fromCode = add('big', {
      on: 'order.placed',
      condition: 'total > 1000',
      retry: { maxAttempts: 5, initialDelay: '2s', maxDelay: '30s', backoff: 'fixed' },
      onFailure: 'log',
      orderBy: 'aggregate',
      rate: '5/m',
      actions: [
        log,
        { type: 'webhook', name: 'erp', url: 'https://erp.example.com', body: { maxAttempts: 1, on_failure: 2 } },
      ],
    })
    const text = [
      '[observers.big]',
      'on = "order.placed"',
      'condition = "total > 1000"',
      'retry = { max_attempts = 5, initial_delay = "2s", max_delay = "30s", backoff = "fixed" }',
      'on_failure = "log"',
      'order_by = "aggregate"',
      'rate = "5/m"',
      'actions = [{ type = "log", message = "hi" }, { type = "webhook", name = "erp", url = "https://erp.example.com", ' +
        'body = { maxAttempts = 1, on_failure = 2 } }]',
    ].join('\n')
    const fromFile = await loadConfigurationFile({ text, name: 'a.toml' }, ports)
    expect(fromFile.ok && fromFile.observers[0]?.hash).toBe(fromCode.hash)
    expect(fromCode.actions[1]).toMatchObject({ retry: { maxAttempts: 5, strategy: 'fixed' } })
  })

  it('has its mistakes named by path, in its own spelling', () => {
    const options = {
      on: 'order.placd',
      condition: 'totl > 5',
      retry: { max_attempts: 3 },
      onFailur: 'dlq',
      orderBy: 'a +',
      timeout: 30,
      actions: [{ type: 'slack', message: 'x' }, { type: 'log', mesage: 'x' }, log],
    }
    expect(mistakesOf('big', options)).toEqual([
      ['observer "big"', 'retry.max_attempts', 'is not a setting. Did you mean "maxAttempts"?'],
      ['observer "big"', 'timeout', 'must be a duration like "250ms", "30s", "5m" or "PT36H", not 30.'],
      ['observer "big"', 'onFailur', 'is not a setting. Did you mean "onFailure"?'],
      ['observer "big"', 'on', expect.stringContaining('Did you mean "order.placed"?')],
      ['observer "big"', 'orderBy', expect.any(String)],
      ['observer "big"', 'actions[0].type', expect.stringContaining('[providers.slack]')],
      ['observer "big"', 'actions[1].mesage', 'is not a setting. Did you mean "message"?'],
      ['observer "big"', 'actions[2].type', expect.stringContaining('second action named "log"')],
    ])
  })

  it('does not take the keys of the file for its own', () => {
    expect(mistakesOf('big', { on: 'order.placed', order_by: 'aggregate', actions: [log] })).toEqual([
      ['observer "big"', 'order_by', 'is not a setting. Did you mean "orderBy"?'],
    ])
  })

  it('needs a name, a table and an action', () => {
    expect(mistakesOf('no name', { on: 'order.placed', actions: [log] })).toMatchObject([
      ['observer "no name"', 'name', expect.any(String)],
    ])
    expect(mistakesOf('a', undefined)).toHaveLength(1)
    expect(mistakesOf('a', { on: 'order.placed', actions: [] })).toMatchObject([
      ['observer "a"', 'actions', expect.stringContaining('at least one action')],
    ])
  })

  it('may use action types of the application', () => {
    const schema = z.strictObject({ room: z.string() })
    const own = {
      type: 'pager',
      schema,
      defaultRetry: 'local' as const,
      prepare: () => {
        throw new Error('not called')
      },
    }
    const { actions } = toObserverConfig(
      'a',
      { on: 'order.placed', actions: [{ type: 'pager', room: '5' }] },
      toSettings({}),
      { actionTypes: new Map([['pager', own]]) },
    )
    expect(actions).toMatchObject([{ name: 'pager', config: { room: '5' }, prepared: null }])
  })
})
