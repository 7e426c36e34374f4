import { createECDH, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ActionType, defineActionType } from '../../src/index.ts'
import { createActionTypes, findActionType } from '../../src/observers/actions/index.ts'
import { silentLogger } from '../../src/runtime/index.ts'
import { type ActionUnderTest, describeActionType, testEvent } from '../../src/testing/index.ts'
import { connect, openTestDatabase } from '../support/database.ts'
import { httpReceiver, type Reply } from '../support/receivers.ts'
import { smtpReceiver } from '../support/receivers-smtp.ts'
import { hasRedis, startRedis } from '../support/redis.ts'
import { privateKeyOf } from '../support/vapid.ts'

const framework = { describe, it, expect }
const built = (type: string): ActionType => findActionType(createActionTypes(), type)
const secret = (text: string) => ({ reveal: () => text })
const CANARY = 'canary0123456789abcdef'
const ALLOW = { network: { allow: ['127.0.0.1'] } }
const event = testEvent('order.placed', {
  id: 'contract-1',
  payload: { name: 'Ada', phone: '+4915198765432', user: 'ada' },
  aggregate: { type: 'order', id: '42' },
})

type Under = Omit<ActionUnderTest, 'type' | 'received' | 'stop'>

/** An action whose receiver speaks HTTP. `reply` is how it says yes. */
async function overHttp(
  type: ActionType,
  toUnder: (url: string) => Under | Promise<Under>,
  yes: Reply = (response) => response.end('ok'),
): Promise<ActionUnderTest> {
  let reply: Reply = yes
  const receiver = await httpReceiver((response, call, number) => reply(response, call, number))
  return {
    type,
    event,
    received: () => receiver.calls.map(({ path, headers, body }) => `${path} ${JSON.stringify(headers)} ${body}`),
    fail() {
      reply = (response, { path, headers, body }) =>
        response.writeHead(500).end(`${path} ${JSON.stringify(headers)} ${body}`)
    },
    hang() {
      reply = () => {}
    },
    stop: async () => {},
    ...(await toUnder(receiver.url)),
  }
}

describeActionType(
  'a webhook',
  () =>
    overHttp(built('webhook'), (url) => ({
      config: {
        url: `${url}/hook`,
        headers: { authorization: secret(`Bearer ${CANARY}`) },
        body: { to: '{{ name }}' },
      },
      wrong: { config: { url: 'ftp://x', headers: { host: 'x' }, body: '{{ }}' }, keys: ['url', 'headers', 'body'] },
      settings: ALLOW,
      secrets: [CANARY],
      sendsKey: true,
    })),
  framework,
)

describeActionType(
  'a Slack message',
  () =>
    overHttp(built('slack'), (url) => ({
      config: { message: 'Hello {{ name }}' },
      wrong: { config: { message: '{{ }}', channel: '{{ x' }, keys: ['channel', 'message'] },
      settings: { providers: { slack: { webhook_url: `${url}/services/${CANARY}` } } },
      secrets: [CANARY],
      sendsKey: false,
    })),
  framework,
)

describeActionType(
  'an SMS',
  () =>
    overHttp(
      built('sms'),
      (url) => ({
        config: { to: '{{ phone }}', message: 'Hello {{ name }}' },
        wrong: { config: { to: '123', message: '{{ }}' }, keys: ['to', 'message'] },
        settings: { providers: { sms: { account: 'AC1', token: CANARY, from: '+12025550123', base_url: url } } },
        secrets: [CANARY, Buffer.from(`AC1:${CANARY}`).toString('base64')],
        sendsKey: false,
      }),
      (response) => response.writeHead(201).end(JSON.stringify({ sid: 'SM0123456789', status: 'queued' })),
    ),
  framework,
)

describeActionType('a push message', () => overHttp(built('push'), pushTo), framework)

async function pushTo(url: string): Promise<Under> {
  const { db, url: databaseUrl } = await openTestDatabase({ migrated: true })
  const [vapid, browser] = [createECDH('prime256v1'), createECDH('prime256v1')]
  for (const curve of [vapid, browser]) curve.generateKeys()
  const auth = randomBytes(16).toString('base64url')
  const sql = await connect(databaseUrl)
  await sql.query(
    `insert into aftercommit.push_subscriptions (endpoint_hash, user_id, endpoint, p256dh, auth)
     values ('1', 'ada', $1, $2, $3)`,
    [`${url}/push/${CANARY}`, browser.getPublicKey('base64url'), auth],
  )
  const privateKey = privateKeyOf(vapid)
  const push = { subject: 'mailto:a@b.example', public_key: vapid.getPublicKey('base64url'), private_key: privateKey }
  return {
    config: { user: '{{ user }}', title: 'Hello {{ name }}' },
    wrong: { config: { user: '{{ }}', title: '{{ x' }, keys: ['user', 'title'] },
    settings: { ...ALLOW, providers: { push } },
    database: db,
    secrets: [CANARY, auth, privateKey],
    // As the topic of the message.
    sendsKey: true,
  }
}

describeActionType(
  'a mail',
  async () => {
    let isRefusing = false
    const smtp = await smtpReceiver({
      user: 'shop',
      password: CANARY,
      recipient: (address) => (isRefusing ? [550, `${address} shop:${CANARY}`] : undefined),
    })
    return {
      type: built('email'),
      event,
      config: { to: 'ada@example.com', subject: 'Hello {{ name }}', text: 'x' },
      wrong: { config: { to: 'nobody', subject: '{{ }}' }, keys: ['to', undefined, 'subject'] as string[] },
      settings: { providers: { smtp: { url: smtp.url, from: 'shop@example.com' } } },
      secrets: [CANARY],
      received: () => smtp.mails.map((mail) => JSON.stringify(mail)),
      // As the id of the mail.
      sendsKey: true,
      fail: () => {
        isRefusing = true
      },
      stop: async () => {},
    }
  },
  framework,
)

describeActionType(
  'a database action',
  async () => {
    const { db, url } = await openTestDatabase({ migrated: true })
    const sql = await connect(url)
    await sql.query(`create table seen (event jsonb)`)
    const define = (body: string) =>
      sql.query(`create or replace function keep(event jsonb) returns void language plpgsql as $$ begin ${body} end $$`)
    await define('insert into public.seen values (event);')
    return {
      type: built('database'),
      event,
      config: { function: 'public.keep' },
      database: db,
      received: async () => (await sql.query(`select event::text from seen`)).rows.map((row) => row.event),
      sendsKey: false,
      fail: async () => void (await define(`raise exception 'no';`)),
      stop: async () => {},
    }
  },
  framework,
)

describeActionType(
  'a custom action',
  async () => {
    const calls: string[] = []
    let behave: (signal: AbortSignal) => unknown = () => {}
    return {
      type: built('custom'),
      event,
      config: { handler: 'own', config: { to: '{{ name }}' } },
      wrong: { config: { handler: 'none', config: '{{ }}' }, keys: ['handler', 'config'] },
      handlers: new Map([
        [
          'own',
          (_, { config, idempotencyKey, signal }) => {
            signal.throwIfAborted()
            calls.push(JSON.stringify([config, idempotencyKey]))
            return behave(signal)
          },
        ],
      ]),
      secrets: [CANARY],
      received: () => calls,
      sendsKey: true,
      fail: () => {
        behave = () => {
          throw new Error(`no connection to postgres://app:${CANARY}@db/shop`, { cause: 'token' })
        }
      },
      stop: async () => {},
    }
  },
  framework,
)

describeActionType(
  'a log line',
  async () => {
    const lines: string[] = []
    const keep = (_: unknown, text?: string) => void lines.push(String(text))
    return {
      type: built('log'),
      event,
      config: { message: 'Hello {{ name }}' },
      logger: { ...silentLogger, debug: keep, info: keep, warn: keep, error: keep },
      received: () => lines,
      sendsKey: false,
      stop: async () => {},
    }
  },
  framework,
)

describeActionType(
  'a document of a search engine',
  () =>
    overHttp(
      built('search'),
      (url) => ({
        config: { index: 'orders', document: { name: '{{ name }}' } },
        settings: { providers: { search: { kind: 'elasticsearch', url, api_key: CANARY } } },
        secrets: [CANARY],
        sendsKey: false,
      }),
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"errors":false,"items":[]}'),
    ),
  framework,
)

if (hasRedis()) {
  describeActionType(
    'a key of a cache',
    async () => {
      const redis = await startRedis({ password: CANARY })
      const client = await redis.client()
      await client.set('customer:Ada', 'gold')
      return {
        type: built('cache'),
        event,
        config: { action: 'invalidate', keys: 'customer:{{ name }}', target: 'redis' },
        wrong: {
          config: { action: 'invalidate', keys: '{{ }}', target: 'redis', ttl: '1m' },
          keys: ['keys', 'ttl'],
        },
        settings: { redis: { enabled: true, url: redis.url } },
        secrets: [CANARY],
        received: async () => ((await client.exists('customer:Ada')) === 0 ? ['customer:Ada'] : []),
        sendsKey: false,
        fail: () => redis.kill(),
        stop: async () => {},
      }
    },
    framework,
  )
}

/** A type as somebody else would write it. */
const own = defineActionType({
  type: 'pager',
  describe: 'Calls a pager.',
  schema: z.strictObject({ url: z.string(), text: z.string(), key: z.custom<{ reveal(): string }>() }),
  defaultRetry: 'service',
  prepare({ url, text, key }, { templates, guarded, clock, createMistakes }) {
    const mistakes = createMistakes()
    const compiled = mistakes.at(['text'], () => templates.text(text, 'plain', 'text'))
    if (!URL.canParse(url)) mistakes.add(['url'], 'is not an address.')
    mistakes.throwIfAny()
    const { origin, pathname: path } = new URL(url)
    return {
      destination: `pager ${origin}`,
      singleAttempt: false,
      async run({ scope, signal, idempotencyKey }) {
        const began = clock.monotonic()
        const headers = ['x-key', key.reveal(), 'x-id', idempotencyKey]
        const body = compiled.render(scope)
        const request = { method: 'POST', target: { origin, path }, headers, body, timeoutMs: 30_000, signal } as const
        const { status } = await guarded.send(request)
        if (status >= 300) throw new Error(`token=${key.reveal()} was answered with ${status}`)
        return { actionType: 'pager', success: true, message: 'called', durationMs: clock.monotonic() - began }
      },
      preview: ({ scope }) => ({ actionType: 'pager', destination: origin, content: { text: compiled.render(scope) } }),
    }
  },
})

const pager = (type: ActionType) =>
  overHttp(type, (url) => ({
    config: { url: `${url}/page`, text: 'Hello {{ name }}', key: secret(CANARY) },
    wrong: { config: { url: 'nowhere', text: '{{ }}', key: secret(CANARY) }, keys: ['text', 'url'] },
    settings: ALLOW,
    secrets: [CANARY],
    sendsKey: true,
  }))

describeActionType('an action of a package', () => pager(own), framework)

describe('the suite itself', () => {
  const spoilt = (change: Partial<ActionType>) => failures({ ...own, ...change } as ActionType)
  const spoiltRun = (change: (prepared: ReturnType<ActionType['prepare']>) => object) =>
    spoilt({
      prepare: (config, context) => {
        const prepared = (own as ActionType).prepare(config, context)
        return { ...prepared, ...change(prepared) } as typeof prepared
      },
    })

  it('finds a type that takes any key, and one that tells its mistakes one by one', async () => {
    expect(await spoilt({ schema: z.looseObject({}) })).toContain('takes its keys and refuses others')
    const prepare: ActionType['prepare'] = (config, context) => {
      if ((config as { url: string }).url === 'nowhere') throw new Error('is not an address')
      return (own as ActionType).prepare(config, context)
    }
    expect(await spoilt({ prepare })).toEqual(['tells every mistake at once, by its key'])
  })

  it('finds a preview that sends, a run that lies, one that does not end and one that tells secrets', async () => {
    const sending = await spoiltRun(({ run, preview }) => ({
      run,
      preview: (request: Parameters<typeof run>[0]) => {
        void Promise.resolve(run(request)).catch(() => {})
        return { ...preview(request), content: { key: CANARY } }
      },
    }))
    expect(sending).toEqual(['shows what it would do without doing it, and without a secret'])
    const lying = await spoiltRun(() => ({ run: async () => ({ success: true, message: '', durationMs: 0 }) }))
    expect(lying).toContain('does it once, and says so in a result without a secret')
    const rekeying = await spoiltRun(({ run }) => ({
      run: (request: Parameters<typeof run>[0]) => run({ ...request, idempotencyKey: `${request.attempt}` }),
    }))
    expect(rekeying).toEqual(['tells the receiver the same key with every attempt, and another one for another event'])
    const telling = await spoiltRun(({ run }) => ({
      run: (request: Parameters<typeof run>[0]) =>
        Promise.resolve(run(request)).catch(() => {
          throw new Error(`the receiver does not like ${CANARY}`)
        }),
    }))
    expect(telling).toEqual(['fails with an error that has a code and tells no secret'])
  })
})

/** The titles of the scenarios that fail. */
async function failures(type: ActionType): Promise<string[]> {
  const bodies: [string, () => Promise<void>][] = []
  const collect = (title: string, body: () => Promise<void>) => void bodies.push([title, body])
  describeActionType('collected', () => pager(type), { describe: (_, body) => body(), it: collect, expect })
  const failed: string[] = []
  for (const [title, body] of bodies) await body().catch(() => failed.push(title))
  return failed
}
