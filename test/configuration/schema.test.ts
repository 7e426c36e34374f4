import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkData, findMistakes, settingsSchema, settingsShape } from '../../src/configuration/index.ts'

const messagesOf = (data: unknown) =>
  findMistakes(settingsSchema, data).map(({ path, message }) => [path.join('.'), message])

describe('the settings of the file', () => {
  it('accept the whole of the documented file', () => {
    const file = {
      include: [],
      log: { retention: 'unlimited', wake: 'doorbell', max_payload: '1MB', max_nesting: 64, max_depth: 32 },
      dlq: { store_stacks: false, auto_redrive: { after: '5m', max: 3 } },
      runtime: {
        record: 'all',
        channel_capacity: 1000,
        max_concurrency: 50,
        overflow_policy: 'drop_oldest',
        backlog_alert_threshold: 500,
        shutdown_timeout: '30s',
      },
      failure_alerts: { slack: '#ops', email: 'ops@example.com' },
      providers: {
        slack: { webhook_url: `\${env:SLACK_WEBHOOK_URL}` },
        smtp: { url: `\${env:SMTP_URL}`, from: 'shop@example.com' },
        sms: { account: 'a', token: `\${env:T}`, from: '+1', base_url: 'https://sms.example.com' },
        push: { subject: 'mailto:a@b.c', public_key: 'p', private_key: `\${env:K}` },
        search: { kind: 'meilisearch', url: 'http://search:7700' },
      },
      redis: { enabled: true, url: 'redis://localhost:6379', pool_size: 10, timeout_ms: 5000, channel: 'a:b' },
      graphql: { subscriptions_enabled: true },
      audit: { enabled: true },
      email_templates: { order_shipped: { subject: 's', html: 'h' } },
      templates: { env: ['SHOP_URL'] },
      destinations: {
        'https://erp.example.com': { concurrency: 10, rate: '50/s' },
        'card payments': { rate: '10/s', burst: 30 },
      },
      network: { allow: ['127.0.0.1', '10.20.0.0/16', 'erp.internal', '::1', 'fd00::/8'] },
      observers: {},
    }
    expect(messagesOf(file)).toEqual([])
  })

  it('refuse what they do not know, with the nearest name', () => {
    expect(messagesOf({ runtme: {}, redis: { url: 'redis://x', poolsize: 1 }, zzzzzzzzzz: 1 })).toEqual([
      ['redis.poolsize', 'is not a setting. Did you mean "pool_size"?'],
      ['runtme', 'is not a setting. Did you mean "runtime"?'],
      ['zzzzzzzzzz', expect.stringMatching(/^is not a setting\. Known here: include, database, .*observers\.$/)],
    ])
  })

  it('say what they expect, and what they got unless it may be a secret', () => {
    expect(
      messagesOf({ log: { wake: 'pol', max_depth: 1.5 }, audit: 5, providers: { smtp: { url: 'http://u:pw@h' } } }),
    ).toEqual([
      ['log.wake', 'must be "doorbell" or "poll", not "pol". Did you mean "poll"?'],
      ['log.max_depth', 'must be a whole number from 1 up, not 1.5.'],
      ['providers.smtp.url', expect.not.stringContaining('pw')],
      ['providers.smtp.from', expect.stringMatching(/^is missing\./)],
      ['audit', 'must be a table, not 5.'],
    ])
  })

  it('know what belongs together', () => {
    expect(messagesOf({ providers: { search: { kind: 'opensearch' } } })).toEqual([
      ['providers.search.url', 'is missing. opensearch needs it.'],
    ])
    expect(messagesOf({ providers: { search: { kind: 'postgres', url: 'http://x' } } })).toHaveLength(1)
    expect(messagesOf({ email_templates: { x: { subject: 's' } } })).toEqual([
      ['email_templates.x.html', expect.stringContaining('html, text or both')],
    ])
  })

  it('refuse destinations and networks that could never match', () => {
    const refused = (data: object) => messagesOf(data).length
    for (const key of [
      'erp.example.com',
      'https://x/path',
      'https://u@x',
      'https://x?y',
      'ftp://x',
      'mail/',
      ' mail',
      '',
    ]) {
      expect(refused({ destinations: { [key]: {} } }), key).toBe(1)
    }
    expect(messagesOf({ destinations: { 'erp.example.com': {} } })).toEqual([
      [
        'destinations.erp.example.com',
        expect.stringMatching(/must be an origin .*; or what a workflow calls a destin/),
      ],
    ])
    expect(messagesOf({ destinations: { mail: { burst: 5 } } })).toEqual([
      ['destinations.mail.burst', expect.stringContaining('needs a rate')],
    ])
    for (const target of ['http://x', '10.0.0.0/33', '300.1.1.1', 'a/8', '10.0.0.0/8/8', '127.0.0.1:80', '']) {
      expect(refused({ network: { allow: [target] } }), target).toBe(1)
    }
  })

  it('do not lose a key named __proto__ where any name may stand', () => {
    const data = JSON.parse('{ "email_templates": { "__proto__": { "subject": "s" } } }')
    expect(messagesOf(data)).toEqual([['email_templates.__proto__', 'is not a name to use here.']])
  })

  it('describe every setting', () => {
    const walk = (schema: z.ZodType, path: string): string[] => {
      const inner = schema instanceof z.ZodOptional ? (schema.unwrap() as z.ZodType) : schema
      const own = inner.meta()?.description === undefined ? [path] : []
      if (inner instanceof z.ZodRecord) return [...own, ...walk(inner.valueType as z.ZodType, `${path}.*`)]
      if (!(inner instanceof z.ZodObject)) return own
      return [...own, ...Object.entries(inner.shape).flatMap(([key, one]) => walk(one as z.ZodType, `${path}.${key}`))]
    }
    expect(Object.entries(settingsShape).flatMap(([key, schema]) => walk(schema, key))).toEqual([])
  })
})

describe('schemas of others', () => {
  it('are read for what they expect', () => {
    const schema = z.strictObject({
      a: z.union([z.string(), z.array(z.string())]),
      b: z.number().max(5),
      c: z.literal('x'),
      d: z.string().regex(/^y/, 'must begin with y'),
      e: z.custom(() => false),
    })
    const { found } = checkData(schema, { a: 5, b: 6, c: 'y', d: 'z', e: 1 }, { above: ['top'], alsoKnown: ['type'] })
    expect(found.map(({ path, message }) => [path.join('.'), message])).toEqual([
      ['top.a', 'must be text, or a list, not 5.'],
      ['top.b', 'must be a number to 5, not 6.'],
      ['top.c', 'must be "x", not "y". Did you mean "x"?'],
      ['top.d', 'must begin with y, not "z".'],
      ['top.e', 'has a value that does not fit here.'],
    ])
  })

  it('have their output given when nothing was found', () => {
    expect(checkData(z.strictObject({ a: z.int().default(5) }), {})).toEqual({ value: { a: 5 }, found: [] })
  })
})
