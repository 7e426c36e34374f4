import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Secret } from '../../../src/configuration/index.ts'
import { defineEvents } from '../../../src/events/index.ts'
import {
  type CheckedConfiguration,
  type CheckPorts,
  checkOnlyPorts,
  loadConfigurationFile,
} from '../../../src/observers/index.ts'

const events = defineEvents({
  'order.placed': z.object({ total: z.number(), customer: z.object({ tier: z.string() }) }),
  'order.shipped.v2': { schema: z.object({ carrier: z.string() }), version: 2, upcast: { 1: (payload) => payload } },
})

async function load(text: string, ports: Partial<CheckPorts> = {}): Promise<CheckedConfiguration> {
  const result = await loadConfigurationFile({ text, name: 'a.toml' }, { ...checkOnlyPorts({}), ...ports })
  if (!result.ok) throw new Error(JSON.stringify(result.mistakes, null, 2))
  return result
}

async function mistakesOf(text: string, ports: Partial<CheckPorts> = {}) {
  const result = await loadConfigurationFile({ text, name: 'a.toml' }, { ...checkOnlyPorts({}), ...ports })
  return result.ok ? [] : result.mistakes.map(({ where, path, message }) => [where, path, message])
}

const LOG = 'actions = [{ type = "log", message = "hi" }]'
const ref = (name: string) => `\${env:${name}}`

describe('an observer', () => {
  it('has every default filled in', async () => {
    const { observers } = await load(`[observers."order.placed"]\n${LOG}`)
    expect(observers).toMatchObject([
      {
        name: 'order.placed',
        on: ['order.placed'],
        entity: null,
        condition: null,
        onFailure: 'dlq',
        enabled: true,
        sequential: false,
        orderBy: null,
        concurrency: null,
        rate: null,
        timeoutMs: null,
        strict: false,
        compiled: { condition: null, orderBy: null },
        actions: [{ name: 'log', type: 'log', config: { message: 'hi' } }],
      },
    ])
  })

  it('takes everything that the file may say', async () => {
    const { observers } = await load(
      [
        '[failure_alerts]',
        'slack = "#ops"',
        '[providers.slack]',
        'webhook_url = "https://hooks.example.com/x"',
        '[observers.big]',
        'on = ["order.*", "invoice.paid"]',
        'entity = "order"',
        'condition = "total > 1000"',
        'retry = { max_attempts = 5, initial_delay = "2s", max_delay = "30s", backoff = "linear" }',
        'on_failure = "alert"',
        'enabled = false',
        'sequential = true',
        'order_by = "customer.id"',
        'concurrency = 3',
        'rate = "50/s"',
        'timeout = "10s"',
        'strict = true',
        '[[observers.big.actions]]',
        'type = "slack"',
        'name = "tell"',
        'channel = "#orders"',
        'message = "{{ total }}"',
      ].join('\n'),
    )
    expect(observers[0]).toMatchObject({
      on: ['order.*', 'invoice.paid'],
      entity: 'order',
      condition: 'total > 1000',
      onFailure: 'alert',
      enabled: false,
      sequential: true,
      orderBy: 'customer.id',
      concurrency: 3,
      rate: { count: 50, perMs: 1000 },
      timeoutMs: 10_000,
      strict: true,
      actions: [{ name: 'tell', retry: { maxAttempts: 5, strategy: 'linear', initialMs: 2_000, maxMs: 30_000 } }],
    })
    expect(observers[0]?.compiled.condition?.source).toBe('total > 1000')
    expect(observers[0]?.compiled.orderBy?.source).toBe('customer.id')
    expect(observers[0]?.actions[0]?.prepared?.destination).toContain('slack')
  })

  it('tries local actions three times, services for hours, and as told when it is told', async () => {
    const retryOf = async (lines: string) =>
      (await load(`[observers.a]\non = "a.b"\n${lines}`)).observers[0]!.actions[0]!.retry
    const webhook = (more = '') => `actions = [{ type = "webhook", url = "https://erp.example.com/x"${more} }]`
    const local = { maxAttempts: 3, strategy: 'exponential', initialMs: 1_000, maxMs: 60_000, jitter: 0.25 }
    expect(await retryOf(LOG)).toEqual(local)
    expect(await retryOf(webhook())).toMatchObject({
      maxAttempts: 8,
      jitter: 0.25,
      scheduleMs: [5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 14_400_000],
    })
    expect(await retryOf(`retry = { max_attempts = 2 }\n${webhook()}`)).toEqual({ ...local, maxAttempts: 2 })
    expect(await retryOf(`retry = {}\n${webhook()}`)).toEqual(local)
    expect(await retryOf(`retry = { schedule = ["1s", "5s"] }\n${LOG}`)).toMatchObject({
      maxAttempts: 3,
      scheduleMs: [1_000, 5_000],
    })
    expect(await retryOf(webhook(', retry = false'))).toMatchObject({ maxAttempts: 1 })
  })

  it('carries secrets that cannot be printed', async () => {
    const text = [
      '[observers.a]',
      'on = "a.b"',
      '[[observers.a.actions]]',
      'type = "webhook"',
      'url = "https://erp.example.com"',
      `secret = "${ref('KEY')}"`,
      `headers = { Authorization = "Bearer ${ref('KEY')}" }`,
    ].join('\n')
    const loaded = await load(text, { env: { KEY: 'hunter2-hunter2' } })
    const config = loaded.observers[0]!.actions[0]!.config as { secret: Secret; headers: { Authorization: Secret } }
    expect(config.secret.reveal()).toBe('hunter2-hunter2')
    expect(config.headers.Authorization.reveal()).toBe('Bearer hunter2-hunter2')
    const printable = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
    expect(JSON.stringify({ ...loaded, observers: [config] }, printable)).not.toContain('hunter2')
  })

  it('with a name of many kinds is refused or kept as it is', async () => {
    const isKept = async (name: string) =>
      (
        await loadConfigurationFile(
          { text: `[observers.${JSON.stringify(name)}]\non = "a.b"\n${LOG}`, name: 'a' },
          checkOnlyPorts({}),
        )
      ).ok
    for (const name of ['a', 'order.placed', 'constructor', 'toString', 'a-b:c.d_1'])
      expect(await isKept(name), name).toBe(true)
    for (const name of [
      '',
      '__proto__',
      '..',
      "a'; drop table x",
      '$1',
      '%',
      'a\nb',
      '\u202Ea',
      '😀',
      'a'.repeat(10_000),
      'a b',
      '"',
    ]) {
      expect(await isKept(name), name.slice(0, 20)).toBe(false)
    }
    expect(Object.hasOwn(Object.prototype, 'on')).toBe(false)
  })
})

describe('mistakes', () => {
  it('of settings, observers, actions, conditions and templates are reported at once', async () => {
    const text = [
      '[runtime]',
      'record = "al"',
      '[observers.big]',
      'on = "order.placed"',
      `condition = "total > 5 && custmer.tier == 'gold'"`,
      'order_by = "a +"',
      'on_failure = "alert"',
      'retrry = 3',
      '[[observers.big.actions]]',
      'type = "webhok"',
      '[[observers.big.actions]]',
      'type = "webhook"',
      'method = "PST"',
      '[[observers.big.actions]]',
      'type = "log"',
      "message = '''",
      'Order {{ event.aggregate_id }}',
      "of {{ total | curency }}'''",
      '[[observers.big.actions]]',
      'type = "log"',
      '[[observers.big.actions]]',
      'type = "slack"',
      `channel = "${ref('HOME')}"`,
      '[[observers.big.actions]]',
      'name = "x y"',
    ].join('\n')
    expect(await mistakesOf(text, { events })).toEqual([
      ['a.toml:2:10', 'runtime.record', 'must be "all" or "problems", not "al". Did you mean "all"?'],
      ['a.toml:5:27', 'observers.big.condition', expect.stringContaining('Did you mean "customer"?')],
      ['a.toml:6:16', 'observers.big.order_by', expect.any(String)],
      ['a.toml:7:14', 'observers.big.on_failure', expect.stringContaining('[failure_alerts]')],
      ['a.toml:8:1', 'observers.big.retrry', 'is not a setting. Did you mean "retry"?'],
      ['a.toml:10:8', 'observers.big.actions[0].type', expect.stringContaining('Did you mean "webhook"?')],
      ['a.toml:11:17', 'observers.big.actions[1].url', expect.stringMatching(/^is missing/)],
      ['a.toml:13:10', 'observers.big.actions[1].method', expect.stringContaining('Did you mean "POST"?')],
      ['a.toml:18:15', 'observers.big.actions[2].message', expect.stringContaining('Did you mean "currency"?')],
      ['a.toml:20:8', 'observers.big.actions[3].type', expect.stringContaining('second action named "log"')],
      ['a.toml:22:8', 'observers.big.actions[4].type', expect.stringContaining('[providers.slack] is not there')],
      ['a.toml:23:11', 'observers.big.actions[4].channel', expect.stringContaining('refers to the environment')],
      ['a.toml:24:17', 'observers.big.actions[5].type', expect.stringMatching(/^is missing/)],
    ])
  })

  it('mark the place inside a condition', async () => {
    const text = `[observers.a]\non = "order.placed"\ncondition = "customer.tier == \\"x\\" || totl > 5"\n${LOG}`
    const result = await loadConfigurationFile({ text, name: 'a.toml' }, { ...checkOnlyPorts({}), events })
    expect(result.ok ? '' : result.mistakes.map(({ frame }) => frame).join('\n')).toContain(
      `    3 | condition = "customer.tier == \\"x\\" || totl > 5"\n      |                                        ^`,
    )
  })

  it('are made by patterns that no event can match', async () => {
    const on = (pattern: string) => mistakesOf(`[observers.a]\non = ${pattern}\n${LOG}`, { events })
    expect(await on('"order.placd"')).toEqual([
      ['a.toml:2:6', 'observers.a.on', 'no event named "order.placd" is defined. Did you mean "order.placed"?'],
    ])
    expect(await on('["order.placed", "ordr.*"]')).toEqual([
      ['a.toml:2:23', 'observers.a.on[1]', '"ordr.*" matches none of the defined events. Did you mean "order.*"?'],
    ])
    expect(await on('["order.*", "order.shipped", "*"]')).toEqual([])
    expect(await on('"Order.*"')).toMatchObject([
      ['a.toml:2:6', 'observers.a.on', expect.stringContaining('not a pattern')],
    ])
    expect(await mistakesOf(`[observers.order_placed]\n${LOG}`, { events })).toEqual([
      [
        'a.toml:1:12',
        'observers.order_placed',
        'has no `on`, so its name is the event type: no event named "order_placed" is defined. Did you mean "order.placed"?',
      ],
    ])
    expect(await mistakesOf(`[observers.anything]\n${LOG}`)).toEqual([])
  })

  it('are made by what has no effect or no partner', async () => {
    expect(
      await mistakesOf(`[observers.a]\non = "a.b"\nretry = { schedule = ["1s"], backoff = "fixed" }\n${LOG}`),
    ).toMatchObject([
      ['a.toml:3:30', 'observers.a.retry.backoff', expect.stringContaining('no effect beside schedule')],
    ])
    expect(await mistakesOf('[failure_alerts]\nemail = "ops@example.com"')).toMatchObject([
      ['a.toml:2:9', 'failure_alerts.email', expect.stringContaining('[providers.smtp]')],
    ])
    const mail = (template: string) =>
      mistakesOf(
        [
          '[providers.smtp]',
          'url = "smtp://mail"',
          'from = "a@example.com"',
          '[email_templates.order_shipped]',
          'subject = "s"',
          'text = "t"',
          '[observers.a]',
          'on = "a.b"',
          `actions = [{ type = "email", to = "b@example.com", template = "${template}" }]`,
        ].join('\n'),
      )
    expect(await mail('order_shipped')).toEqual([])
    expect(await mail('order_shiped')).toMatchObject([
      ['a.toml:9:63', 'observers.a.actions[0].template', expect.stringContaining('Did you mean "order_shipped"?')],
    ])
  })

  it('are told once, and not as everything that follows from them', async () => {
    const text =
      '[providers.slack]\nwebhok_url = "https://x"\n[observers.a]\non = "a.b"\nactions = [{ type = "slack", message = "m" }]'
    expect((await mistakesOf(text)).map(([, path]) => path)).toEqual([
      'providers.slack.webhook_url',
      'providers.slack.webhok_url',
    ])
    expect(await mistakesOf('observers = 5')).toMatchObject([['a.toml:1:13', 'observers', 'must be a table, not 5.']])
    expect(await mistakesOf('observers.a = 5')).toMatchObject([
      ['a.toml:1:15', 'observers.a', 'must be a table, not 5.'],
    ])
    expect(await mistakesOf('[observers.a]\non = "a.b"\nactions = [5]')).toMatchObject([
      ['a.toml:3:12', 'observers.a.actions[0]', expect.stringContaining('must be a table')],
    ])
  })

  it('are made by variables that are missing, or that hold what does not belong there', async () => {
    const text = `[providers.slack]\nwebhook_url = "${ref('SLACK')}"`
    expect(await mistakesOf(text)).toMatchObject([
      ['a.toml:2:15', 'providers.slack.webhook_url', expect.stringContaining('SLACK, which is not set')],
    ])
    const [[, , message] = []] = await mistakesOf(text, { env: { SLACK: 'hunter2' } })
    expect(message).toBe(
      'is [secret env:SLACK], whose value does not fit: it must be a URL that begins with https:// or http://.',
    )
  })

  it('never show a secret', async () => {
    const text = [
      '[providers.sms]',
      'account = "hunter2"',
      'tken = "hunter2"',
      '[redis]',
      'url = "hunter2"',
      '[observers.a]',
      'on = "a.b"',
      '[[observers.a.actions]]',
      'type = "webhook"',
      'url = "https://u:hunter2@erp.example.com/?token=hunter2"',
      'secret = 5',
      'headers = { X-Own = "hunter2", Y = 5 }',
      'passwrd = "hunter2"',
      '[[observers.a.actions]]',
      'type = "webhook"',
      'name = "second"',
      'url = "https://u:hunter2@erp.example.com/"',
    ].join('\n')
    const result = await loadConfigurationFile({ text, name: 'a.toml' }, checkOnlyPorts({}))
    expect(result.ok).toBe(false)
    expect(JSON.stringify(result)).not.toContain('hunter2')
  })

  it('leave bugs alone: what is no error of ours passes', async () => {
    const prepare = () => () => {
      throw new TypeError('a bug')
    }
    await expect(load(`[observers.a]\non = "a.b"\n${LOG}`, { prepare })).rejects.toThrow('a bug')
  })
})

describe('the hash', () => {
  it('is the same for the same rules, however they are written', async () => {
    const one = await load(`[observers.a]\non = "a.b"\nsequential = true\n${LOG}\n[runtime]\nmax_concurrency = 5`)
    const other = await load(`runtime.max_concurrency = 5\n[observers.a]\n${LOG}\nsequential = true\non = ["a.b"]`)
    expect(other.hash).toBe(one.hash)
    expect(other.observers[0]?.hash).toBe(one.observers[0]?.hash)
  })

  it('changes with a rule, and not with the value of a secret', async () => {
    const text = (message: string) =>
      `[providers.slack]\nwebhook_url = "${ref('S')}"\n[observers.a]\non = "a.b"\nactions = [{ type = "log", message = "${message}" }]`
    const hashOf = async (message: string, S: string) => (await load(text(message), { env: { S } })).hash
    expect(await hashOf('x', 'https://1')).toBe(await hashOf('x', 'https://2'))
    expect(await hashOf('x', 'https://1')).not.toBe(await hashOf('y', 'https://1'))
  })
})
