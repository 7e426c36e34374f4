import { createECDH } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { judgeUrl, parseRules } from '../../../src/observers/network/index.ts'
import { createPush } from '../../../src/push/index.ts'
import { summarizeError } from '../../../src/runtime/index.ts'
import { connect, openTestDatabase } from '../../support/database.ts'
import { type PushServiceDouble, pushService } from '../../support/push-service.ts'
import { dnsReceiver } from '../../support/receivers-dns.ts'
import { privateKeyOf } from '../../support/vapid.ts'
import { failureOf, prepare, requestFor } from './support.ts'

function vapid() {
  const curve = createECDH('prime256v1')
  curve.generateKeys()
  return {
    subject: 'mailto:ops@example.com',
    publicKey: curve.getPublicKey('base64url'),
    privateKey: privateKeyOf(curve),
  }
}

const CONFIG = { user: '{{ user }}', title: 'Order {{ number }}', body: 'is on its way', data: { n: '{{ number }}' } }

async function open(
  config: Record<string, unknown> = {},
  { allow = ['127.0.0.1'], dns = {} }: { allow?: string[]; dns?: { servers?: string[] } } = {},
) {
  const keys = vapid()
  const service = await pushService(keys.publicKey)
  const { db, url } = await openTestDatabase({ migrated: true })
  const { push } = createPush({ database: db, refusalOf: async (one) => judgeUrl(one, parseRules(['127.0.0.1'])) })
  const options = { providers: { push: keys }, database: db, allow, http: { ca: service.ca, dns } }
  const action = prepare('push', { ...CONFIG, ...config }, options)
  const sql = await connect(url)
  const count = async (table: string) =>
    Number((await sql.query(`select count(*) from aftercommit.${table}`)).rows[0].count)
  const browsersOf = async (user: string, many: number) => {
    const browsers = Array.from({ length: many }, () => service.subscribe())
    for (const { subscription } of browsers) await push.register(user, subscription)
    return browsers
  }
  return { action, service, push, browsersOf, count, sql, keys, options }
}

const toAda = (more: Parameters<typeof requestFor>[0] = {}) =>
  requestFor({ action: 'push', payload: { user: 'ada', number: 7 }, ...more })

describe('a push message', () => {
  it('reaches every browser of its user and nobody else, as a standard push service takes it', async () => {
    const { action, service, browsersOf, count } = await open({
      url: '/orders/{{ number }}',
      ttl: '1h',
      urgency: 'high',
    })
    const browsers = await browsersOf('ada', 3)
    const [stranger] = await browsersOf('bob', 1)
    const request = toAda()
    expect(await action.run(request)).toMatchObject({ actionType: 'push', success: true, message: 'sent to 3 devices' })
    expect(service.complaints).toEqual([])
    for (const { messages } of browsers) {
      expect(messages.map(({ text }) => JSON.parse(text))).toEqual([
        { id: request.idempotencyKey, title: 'Order 7', body: 'is on its way', url: '/orders/7', data: { n: 7 } },
      ])
      expect(messages[0]?.headers).toMatchObject({ ttl: '3600', urgency: 'high', topic: request.idempotencyKey })
    }
    expect(stranger?.calls).toBe(0)
    expect(await count('push_progress')).toBe(0)
  })

  it('is a success that says so when its user has no device', async () => {
    const { action } = await open()
    expect((await action.run(toAda())).message).toBe('the user has no devices; nothing was sent')
  })

  it('removes a browser whose service says that it is gone, with 404 and with 410', async () => {
    const { action, browsersOf, push } = await open()
    const [stays, left, lost] = await browsersOf('ada', 3)
    left!.answers.push((response) => response.writeHead(404).end())
    lost!.answers.push((response) => response.writeHead(410).end())
    expect((await action.run(toAda())).message).toBe('sent to 1 device; 2 gone and removed')
    expect((await push.list('ada')).map(({ endpoint }) => endpoint)).toEqual([stays!.subscription.endpoint])
  })

  it('that some have not got is tried again for those alone, and then nothing is left of it', async () => {
    const { action, browsersOf, count } = await open()
    const [well, busy, broken] = await browsersOf('ada', 3)
    busy!.answers.push((response) => response.writeHead(429, { 'retry-after': '7' }).end())
    broken!.answers.push((response) => response.writeHead(503, { 'retry-after': '3' }).end())
    broken!.answers.push((response) => response.destroy())
    const error = await failureOf(() => action.run(toAda()))
    expect(error).toMatchObject({ code: 'OB010', transient: true, retryAfterMs: 7_000, gone: false })
    expect(error.message).toContain('2 of 3 devices')
    expect(await failureOf(() => action.run(toAda({ attempt: 2 })))).toMatchObject({ code: 'OB010', transient: true })
    expect(await count('push_progress')).toBe(2)
    // Another event of the same user is another message.
    await action.run(toAda({ id: 'evt-2' }))
    expect((await action.run(toAda({ attempt: 3 }))).message).toBe('sent to 3 devices')
    expect([well, busy, broken].map((browser) => browser!.messages.length)).toEqual([2, 2, 2])
    expect(await count('push_progress')).toBe(0)
  })

  it('is not put off for a day by one browser, for which all others would wait', async () => {
    const { action, browsersOf } = await open()
    const [hostile] = await browsersOf('ada', 1)
    hostile!.answers.push((response) => response.writeHead(429, { 'retry-after': '86400' }).end())
    const { retryAfterMs } = await failureOf(() => action.run(toAda()))
    expect(retryAfterMs).toBe(60_000)
  })

  it.each([413, 400, 401, 403])(
    'that is refused with %i is not tried again, and the others have it',
    async (status) => {
      const { action, browsersOf, count } = await open()
      const [refusing, well] = await browsersOf('ada', 2)
      for (const _ of [1, 2]) refusing!.answers.push((response) => response.writeHead(status).end('no'))
      expect(await failureOf(() => action.run(toAda()))).toMatchObject({ code: 'OB010', transient: false, status })
      // A redrive of the dead letter does not reach those again that have it.
      await failureOf(() => action.run(toAda()))
      expect(well?.messages).toHaveLength(1)
      await action.run(toAda())
      expect([refusing, well].map((browser) => browser!.messages.length)).toEqual([1, 1])
      expect(await count('push_progress')).toBe(0)
    },
  )

  it('remembers who has it when the process stops in the middle', async () => {
    const { action, browsersOf, sql } = await open()
    const browsers = await browsersOf('ada', 11)
    const stopping = new AbortController()
    // Ten are called at once, those seen last first: this one when another has the message.
    browsers[0]!.answers.push(() => stopping.abort(new Error('stopping')))
    await expect(action.run(toAda({ signal: stopping.signal }))).rejects.toThrow('stopping')
    const { rows } = await sql.query(
      `select endpoint from aftercommit.push_progress join aftercommit.push_subscriptions using (endpoint_hash)`,
    )
    expect(rows.length).toBeGreaterThan(0)
    const done = new Set(rows.map(({ endpoint }) => endpoint))
    const had = browsers.filter(({ subscription }) => done.has(subscription.endpoint))
    await action.run(toAda({ attempt: 2 }))
    expect(had.map(({ messages }) => messages.length)).toEqual(had.map(() => 1))
    expect(browsers.every(({ messages }) => messages.length > 0)).toBe(true)
  })

  it('is not sent to an address that became private, or that was never allowed', async () => {
    const names = await dnsReceiver(() => ['127.0.0.1'])
    const { action, browsersOf, sql } = await open({}, { allow: [], dns: { servers: [names.server] } })
    const [browser] = await browsersOf('ada', 1)
    expect(await failureOf(() => action.run(toAda()))).toMatchObject({ code: 'OB010', transient: false })
    // A name is judged by what it resolves to.
    await sql.query(`update aftercommit.push_subscriptions set endpoint = replace(endpoint, '127.0.0.1', $1)`, [
      'push.example.com',
    ])
    const error = await failureOf(() => action.run(toAda()))
    expect(error).toMatchObject({ code: 'OB010', transient: false })
    expect(error.message).toContain('it leads to this machine')
    expect([names.questions.length > 0, browser?.calls]).toEqual([true, 0])
  })

  it('that is longer than push services take is refused before anything is sent', async () => {
    const { action, browsersOf } = await open()
    const [browser] = await browsersOf('ada', 1)
    const request = toAda({ payload: { user: 'ada', number: '7'.repeat(3_000) } })
    const error = await failureOf(() => action.run(request))
    expect(error).toMatchObject({ code: 'OB010', transient: false })
    expect(error.message).toMatch(/has \d{4} bytes, and push services take 3993/)
    expect(() => action.preview(request)).toThrow('3993')
    expect(browser?.calls).toBe(0)
  })

  it('of exactly the longest size is taken', async () => {
    const { action, service, browsersOf } = await open({ data: {}, body: '{{ text }}' })
    const [browser] = await browsersOf('ada', 1)
    const empty = action.preview(toAda({ payload: { user: 'ada', number: 7, text: '' } })).content.bytes as number
    const text = 'x'.repeat(3_993 - empty)
    await action.run(toAda({ payload: { user: 'ada', number: 7, text } }))
    expect([service.complaints, browser?.messages.length]).toEqual([[], 1])
  })

  it('can be previewed, which asks nobody', async () => {
    const { action, browsersOf } = await open()
    const [browser] = await browsersOf('ada', 1)
    expect(action.preview(toAda())).toMatchObject({
      destination: 'push web',
      content: { user: 'ada', title: 'Order 7', body: 'is on its way', data: { n: 7 }, ttl: '28d', urgency: 'normal' },
    })
    expect(browser?.calls).toBe(0)
  })

  it('leaves no key and no address in what is kept of a failure', async () => {
    const { action, browsersOf, keys } = await open()
    const [browser] = await browsersOf('ada', 1)
    const { endpoint, keys: own } = browser!.subscription
    browser!.answers.push((response) => response.writeHead(500).end(`no ${endpoint} ${own.auth} ${keys.privateKey}`))
    const error = await failureOf(() => action.run(toAda()))
    const traces = [inspect(error, { depth: 10 }), JSON.stringify(summarizeError(error, { stack: true }))].join('\n')
    const path = new URL(endpoint).pathname.split('/').at(-1)!
    expect(error.detail.response?.body).toContain('***')
    for (const secret of [path, own.auth, keys.privateKey, 'Order 7', 'ada']) expect(traces).not.toContain(secret)
  })
})

describe('a push action', () => {
  it('is refused without its provider, and with templates that cannot be compiled, all at once', async () => {
    const error = await failureOf(() => prepare('push', { user: '{{ }}', title: '{% if %}', data: { a: '{{ x' } }))
    const { mistakes } = error as unknown as { mistakes: { path: unknown; message: string }[] }
    expect(mistakes.map(({ path }) => path)).toEqual([[], ['user'], ['title'], ['data']])
    expect(mistakes[0]?.message).toContain('[providers.push]')
  })

  it('is refused with keys that are none, or that are no pair, without repeating them', async () => {
    const [one, other] = [vapid(), vapid()]
    for (const [push, key] of [
      [{ ...one, publicKey: 'canary' }, 'public_key'],
      [{ ...one, privateKey: 'canary' }, 'private_key'],
      [{ ...one, publicKey: other.publicKey }, 'public_key'],
      [{ ...one, subject: 'canary' }, 'subject'],
    ] as const) {
      const error = await failureOf(() => prepare('push', CONFIG, { providers: { push } }))
      expect(error).toMatchObject({ code: 'OB012', path: ['providers', 'push', key] })
      expect(error.message).not.toMatch(/canary/)
    }
  })

  it('opens nothing but a path or an address whose host is written out', () => {
    for (const url of ['{{ url }}', 'https://{{ host }}/', '//evil.example', 'javascript:alert(1)'])
      expect(() => prepare('push', { ...CONFIG, url }), url).toThrow('must begin with')
  })
})

const kept = (service: PushServiceDouble) => service.subscribe().subscription

describe('registering a browser', () => {
  it('keeps it once, and gives it to whoever signed in last', async () => {
    const { push, service, count } = await open()
    const subscription = kept(service)
    expect(await push.register('ada', subscription)).toBe(true)
    expect(await push.register('ada', subscription)).toBe(false)
    expect(await push.register('bob', subscription)).toBe(false)
    expect(await push.list('ada')).toEqual([])
    expect(await push.list('bob')).toEqual([
      { endpoint: subscription.endpoint, createdAt: expect.any(Date), seenAt: expect.any(Date) },
    ])
    expect(await push.unregister(subscription.endpoint)).toBe(true)
    expect(await push.unregister(subscription.endpoint)).toBe(false)
    expect(await count('push_subscriptions')).toBe(0)
  })

  it('happens with the transaction it is part of, or not at all', async () => {
    const { push, service, sql } = await open()
    await sql.query('begin')
    await push.register('ada', kept(service), { tx: sql })
    expect(await push.list('ada')).toEqual([])
    await sql.query('rollback')
    expect(await push.list('ada')).toEqual([])
    await sql.query('begin')
    await push.register('ada', kept(service), { tx: sql })
    await sql.query('commit')
    expect(await push.list('ada')).toHaveLength(1)
  })

  it('keeps the fifty that were seen last', async () => {
    const { push, service, browsersOf } = await open()
    const [first] = await browsersOf('ada', 50)
    await push.register('ada', kept(service))
    const endpoints = (await push.list('ada')).map(({ endpoint }) => endpoint)
    expect(endpoints).toHaveLength(50)
    expect(endpoints).not.toContain(first!.subscription.endpoint)
  })

  it('keeps no more than fifty of those that were somebody else’s before', async () => {
    const { push, browsersOf } = await open()
    await browsersOf('ada', 50)
    for (const { subscription } of await browsersOf('bob', 3)) await push.register('ada', subscription)
    expect(await push.list('ada')).toHaveLength(50)
  })

  it.each([
    ['nothing', () => null],
    ['a plain http address', (s) => ({ ...s, endpoint: s.endpoint.replace('https', 'http') })],
    ['a private address', (s) => ({ ...s, endpoint: 'https://10.0.0.7/push/1' })],
    ['a metadata service', (s) => ({ ...s, endpoint: 'https://169.254.169.254/latest' })],
    ['this machine', (s) => ({ ...s, endpoint: 'https://localhost/push' })],
    ['an address in another coat', (s) => ({ ...s, endpoint: 'https://[::ffff:10.0.0.7]/push' })],
    ['a password in its address', (s) => ({ ...s, endpoint: 'https://a:b@push.example.com/1' })],
    ['an endless address', (s) => ({ ...s, endpoint: `https://push.example.com/${'x'.repeat(3_000)}` })],
    ['no keys', (s) => ({ endpoint: s.endpoint })],
    ['a key that is too short', (s) => ({ ...s, keys: { ...s.keys, auth: 'AAAA' } })],
    [
      'a point beside the curve',
      (s) => ({ ...s, keys: { ...s.keys, p256dh: Buffer.alloc(65, 4).toString('base64url') } }),
    ],
  ] as [string, (s: ReturnType<typeof kept>) => unknown][])('refuses %s', async (_, change) => {
    const { push, service } = await open()
    const given = change(kept(service)) as ReturnType<typeof kept>
    await expect(push.register('ada', given)).rejects.toMatchObject({ code: 'BAD_PUSH_SUBSCRIPTION' })
    expect(await push.list('ada')).toEqual([])
  })

  it('refuses a user that is no text', async () => {
    const { push, service } = await open()
    for (const user of ['', 'x'.repeat(300), undefined as unknown as string])
      await expect(push.register(user, kept(service))).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })
})
