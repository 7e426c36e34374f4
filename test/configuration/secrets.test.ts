import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  readConfiguration,
  resolveReferences,
  reveal,
  Secret,
  type Settings,
  type SettingsInput,
  toSettings,
  withSecrets,
} from '../../src/configuration/index.ts'

const CANARY = 'hunter2-canary'
const ref = (name: string) => `\${env:${name}}`

describe('a secret', () => {
  const secret = new Secret(CANARY, 'env:TOKEN')

  it('gives its value to whoever asks for it by name', () => {
    expect(secret.reveal()).toBe(CANARY)
    expect([reveal(secret), reveal('plain')]).toEqual([CANARY, 'plain'])
  })

  it('gives only the name of its variable to everything that prints', () => {
    const printed = [
      String(secret),
      `${secret}`,
      JSON.stringify({ secret }),
      inspect({ secret }, { depth: 9, showHidden: true }),
    ]
    for (const text of printed) {
      expect(text).toContain('[secret env:TOKEN]')
      expect(text).not.toContain(CANARY)
    }
    expect(Object.keys(secret)).toEqual([])
  })
})

describe('references to the environment', () => {
  const resolve = <Data extends object>(data: Data, env: Record<string, string>) => {
    const { secrets, found } = resolveReferences(data, env)
    return { data: withSecrets(data, secrets), found: found.map(({ path, message }) => [path.join('.'), message]) }
  }
  const action = (keys: object) => ({ observers: { a: { actions: [keys] } } })

  it('are resolved in addresses, providers, Redis, and the secret and headers of an action', () => {
    const env = { A: 'one', B: 'two' }
    const given = {
      database: ref('A'),
      providers: { sms: { token: ref('A') } },
      redis: { url: ref('B') },
      ...action({ secret: [ref('A'), ref('B')], headers: { Authorization: `Bearer ${ref('A')}-${ref('B')}` } }),
    }
    const { data, found } = resolve(given, env)
    expect(found).toEqual([])
    expect(data.database).toBeInstanceOf(Secret)
    const { secret, headers } = data.observers.a.actions[0] as unknown as {
      secret: Secret[]
      headers: { Authorization: Secret }
    }
    expect(secret.map(reveal)).toEqual(['one', 'two'])
    expect(reveal(headers.Authorization)).toBe('Bearer one-two')
    expect(JSON.stringify(data)).not.toMatch(/one|two/)
  })

  it('are refused everywhere else, whether the variable is set or not', () => {
    const given = {
      schema: ref('A'),
      email_templates: { x: { subject: ref('A') } },
      observers: {
        a: { condition: ref('A'), actions: [{ url: `https://x/${ref('A')}`, config: { secret: ref('A') } }] },
      },
    }
    const { data, found } = resolve(given, { A: CANARY })
    expect(found.map(([path]) => path)).toEqual([
      'schema',
      'email_templates.x.subject',
      'observers.a.condition',
      'observers.a.actions.0.url',
      'observers.a.actions.0.config.secret',
    ])
    expect(JSON.stringify([data, found])).not.toContain(CANARY)
  })

  it('must name variables that are set, be complete, and stay out of templates', () => {
    const headers = {
      a: `${ref('A')} ${ref('B')}`,
      b: ref('no-name'),
      c: `${ref('C')} {{ event.id }}`,
    }
    const { found } = resolve(action({ headers }), { C: CANARY, B: '' })
    expect(found).toMatchObject([
      ['observers.a.actions.0.headers.a', expect.stringContaining('variables A, B, which are not set')],
      ['observers.a.actions.0.headers.b', expect.stringContaining('not complete')],
      ['observers.a.actions.0.headers.c', expect.stringContaining('mixes a secret with a template')],
    ])
    expect(JSON.stringify(found)).not.toContain(CANARY)
  })

  it('leave keys named like a prototype alone', () => {
    const given = { database: ref('A'), redis: JSON.parse('{ "__proto__": { "polluted": "x" } }') }
    const { data } = resolve(given, { A: 'x' })
    expect(Object.keys(data.redis)).toEqual(['__proto__'])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

describe('frames', () => {
  const frameOf = async (text: string, path: string[], at: 'key' | 'value' = 'value') => {
    const { locate } = await readConfiguration({ text, name: 'a.toml' })
    return locate([{ path, at, message: 'x' }])[0]!.frame!
  }

  it('show the key and nothing else where a secret may stand', async () => {
    const text = `[providers.sms]\nfrom = "${CANARY}"\nextra = { token = "${CANARY}", other = 5 }`
    expect(await frameOf(text, ['providers', 'sms', 'from'])).toBe('    2 | from …\n      | ^^^^')
    expect(await frameOf(text, ['providers', 'sms', 'extra', 'other'])).not.toContain(CANARY)
  })

  it('mask secrets that stand beside a mistake', async () => {
    const inline = `x = [{ secret = "${CANARY}", url = 5 }]\ny = { headers = { X-Own = "${CANARY}" }, bad = 1 }`
    const frame = await frameOf(inline, ['x', '0', 'url'])
    expect(frame).not.toContain(CANARY)
    expect(frame.split('\n')[1]!.indexOf('^')).toBe(frame.split('\n')[0]!.indexOf('5'))
    expect(await frameOf(inline, ['y', 'bad'], 'key')).not.toContain(CANARY)
  })
})

describe('settings', () => {
  it('have every default when the file is empty', () => {
    expect(toSettings({})).toEqual({
      group: 'observers',
      log: { retention: undefined, wake: undefined, maxPayload: undefined, maxNesting: undefined, maxDepth: undefined },
      dlq: { storeStacks: false, autoRedrive: null, retentionMs: 30 * 86_400_000 },
      runtime: {
        record: 'all',
        channelCapacity: 1000,
        maxConcurrency: 50,
        overflowPolicy: 'block',
        backlogAlertThreshold: 500,
        shutdownTimeoutMs: 30_000,
      },
      failureAlerts: { slack: null, email: null },
      providers: {},
      redis: null,
      graphql: { subscriptionsEnabled: false },
      audit: { enabled: false },
      actions: { packages: [] },
      emailTemplates: {},
      templates: { env: [] },
      destinations: {},
      network: { allow: [] },
    } satisfies Settings)
  })

  it('are camelCase, with durations and rates as numbers', () => {
    const file: SettingsInput = {
      dlq: { auto_redrive: { after: '5m', max: 3 } },
      providers: { sms: { account: 'a', token: 't', from: 'f' }, search: { kind: 'postgres' } },
      redis: { url: 'redis://x' },
      graphql: {},
      destinations: { 'https://x': { rate: '50/s' }, slack: { concurrency: 2 } },
    }
    expect(toSettings(file)).toMatchObject({
      dlq: { autoRedrive: { afterMs: 300_000, max: 3 } },
      providers: { sms: { account: 'a', token: 't', from: 'f' }, search: { kind: 'postgres' } },
      redis: { enabled: true, url: 'redis://x', poolSize: 10, timeoutMs: 5000 },
      graphql: { subscriptionsEnabled: true },
      destinations: { 'https://x': { rate: { count: 50, perMs: 1000 } }, slack: { concurrency: 2, rate: null } },
    })
  })
})
