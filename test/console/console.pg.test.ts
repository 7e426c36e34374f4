import { request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createConsole } from '../../src/console/console.ts'
import { type ConsoleRole, type ConsoleUser, serveConsole } from '../../src/console/index.ts'
import { ROUTES } from '../../src/console/routes.ts'
import { GiveUp } from '../../src/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'

const ROLES: readonly ConsoleRole[] = ['viewer', 'operator', 'admin']
const JSON_BODY = { 'content-type': 'application/json' }

async function openConsole(user: ConsoleUser | null = { who: 'ada', role: 'operator' }, options = {}) {
  const opened = await openSubscriptions()
  const console = createConsole(opened.ac, { authorize: () => user, ...options })
  const call = (path: string, init: RequestInit = {}) => console.fetch(new Request(`http://console.test/${path}`, init))
  const post = (path: string, body: object = {}, headers = {}) =>
    call(path, { method: 'POST', headers: { ...JSON_BODY, ...headers }, body: JSON.stringify(body) })
  const read = async (path: string): Promise<Json> => (await call(path)).json() as Promise<Json>
  return { ...opened, call, post, read }
}

/** What an answer holds, as a test looks into it. */
// biome-ignore lint/suspicious/noExplicitAny: a test names the fields it expects.
type Json = any

/** An address of the route with parts that name nothing. */
function addressOf(path: string): string {
  return `api/${path.replace(/:\w+/g, '7')}`
}

describe('access', () => {
  it('is refused without a function that says who asks', async () => {
    const { ac } = await openSubscriptions()
    expect(() => createConsole(ac, {} as never)).toThrow(/authorize/)
  })

  it('lets nobody read anything who is nobody, but the shell of the page', async () => {
    const { call } = await openConsole(null)
    for (const { method, path } of ROUTES) {
      const init = method === 'GET' ? {} : { method, headers: JSON_BODY, body: '{}' }
      expect((await call(addressOf(path), init)).status, path).toBe(401)
    }
    expect((await call('events')).status).toBe(200)
  })

  it('gives each route to its role and the roles above, and to no role below', async () => {
    for (const role of ROLES) {
      const { call } = await openConsole({ who: 'ada', role })
      for (const route of ROUTES) {
        if (route.path === 'stream') continue
        const init = route.method === 'GET' ? {} : { method: route.method, headers: JSON_BODY, body: '{}' }
        const { status } = await call(addressOf(route.path), init)
        const isBelow = ROLES.indexOf(role) < ROLES.indexOf(route.role)
        expect(status === 403, `${role} on ${route.method} ${route.path}: ${status}`).toBe(isBelow)
        expect(status, route.path).not.toBe(500)
      }
    }
  })

  it('changes nothing where it is read-only', async () => {
    const { post } = await openConsole({ who: 'ada', role: 'admin' }, { readOnly: true })
    for (const { path } of ROUTES.filter(({ changes }) => changes)) {
      const answer = await post(addressOf(path))
      expect([answer.status, ((await answer.json()) as Json).error.code], path).toEqual([403, 'READ_ONLY'])
    }
  })

  it('takes changes from its own pages alone, and as JSON', async () => {
    const { post, call } = await openConsole()
    const path = 'api/destinations/pause'
    expect((await post(path, {}, { origin: 'https://evil.test' })).status).toBe(403)
    expect((await post(path, {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' }
    expect((await call(path, form)).status).toBe(415)
    const own = { origin: 'http://console.test', 'sec-fetch-site': 'same-origin' }
    expect((await post(path, { destination: 'nowhere' }, own)).status).toBe(404)
  })

  it('answers to its own names alone, where names are given', async () => {
    const { call } = await openConsole(undefined, { hosts: ['console.example.com'] })
    expect((await call('api/session')).status).toBe(421)
  })

  it('allows no script, style or frame of others on any page', async () => {
    const { call } = await openConsole()
    for (const path of ['', 'events', 'app.js', 'api/session', 'api/nothing']) {
      const policy = (await call(path)).headers.get('content-security-policy')
      expect(policy, path).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
      expect(policy, path).toContain("frame-ancestors 'none'")
    }
  })
})

describe('what a role does not see', () => {
  const CANARY = 'canary-4711'

  async function withCanaries() {
    const { ac, url, sql } = await openSubscriptions()
    ac.subscribe({
      id: 'mail',
      retry: { maxAttempts: 1 },
      handle: (event) => {
        throw new GiveUp(`cannot print ${JSON.stringify(event.payload)}`)
      },
    })
    ac.observers.action('note', () => {
      throw new Error(`cannot note ${CANARY}`)
    })
    await ac.observers.add({
      name: 'noted',
      on: 'lamp.lit',
      condition: `note != "${CANARY}-else"`,
      retry: { maxAttempts: 2, initialDelay: '1h', maxDelay: '1h' },
      actions: [{ type: 'custom', name: 'note', handler: 'note' }],
    })
    await ac.start()
    const metadata = { userId: 'user-of-canary', actingFor: 'customer-of-canary' }
    await ac.transaction((tx) =>
      tx.emit('lamp.lit', {
        id: 'a',
        aggregate: { type: 'lamp', id: '1' },
        payload: { note: CANARY },
        metadata,
      } as never),
    )
    await eventually(async () => (await ac.deadLetters.count()) === 1 && (await ac.deliveries.list()).length === 1)
    const [row] = await ac.deliveries.list()
    const paths = [
      ...ROUTES.filter(({ method, path }) => method === 'GET' && path !== 'stream' && !path.includes(':')).map(
        ({ path }) => path,
      ),
      ...['events/a', 'dead-letters/1', `deliveries/${row!.id}`, 'workflows/lamp/1'],
    ]
    const seenBy = async (role: ConsoleRole) => {
      const console = createConsole(ac, { authorize: () => ({ who: 'ada', role }) })
      const texts = await Promise.all(
        paths.map(
          async (path) => `${path}: ${await (await console.fetch(new Request(`http://c.test/api/${path}`))).text()}`,
        ),
      )
      return texts.join('\n')
    }
    return { ac, url, sql, seenBy }
  }

  it('is any part of a payload, for a viewer', async () => {
    const { seenBy } = await withCanaries()
    expect(await seenBy('operator')).toContain(CANARY)
    // The text of the rule is no payload.
    expect((await seenBy('viewer')).replaceAll(`${CANARY}-else`, '')).not.toContain(CANARY)
  })

  it('is the user of an event, for a viewer and an operator', async () => {
    const { seenBy } = await withCanaries()
    expect(await seenBy('admin')).toContain('user-of-canary')
    for (const role of ['viewer', 'operator'] as const) {
      expect(await seenBy(role)).not.toMatch(/user-of-canary|customer-of-canary/)
    }
  })

  it('is what a driver says, in an error', async () => {
    const { ac } = await openSubscriptions()
    const authorize = () => {
      throw Object.assign(new Error('password authentication failed for user "secret"'), { code: '28P01' })
    }
    const answer = await createConsole(ac, { authorize }).fetch(new Request('http://c.test/api/session'))
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('secret')])
  })

  it('is pushed no longer when the session that opened the stream has ended', async () => {
    const { ac } = await openSubscriptions()
    let user: ConsoleUser | null = { who: 'ada', role: 'operator' }
    const console = createConsole(ac, { authorize: () => user })
    const answer = await console.fetch(new Request('http://c.test/api/stream?tail=1'))
    const reader = answer.body!.getReader()
    await reader.read()
    user = null
    for (;;) if ((await reader.read()).done) break
  })
})

describe('a console of its own', () => {
  it('is not fooled by an address that names a host of its own', async () => {
    const { ac } = await openSubscriptions()
    const served = await serveConsole(ac, { port: 0 })
    onTestFinished(() => served.close())
    const { port } = new URL(served.url)
    const ask = (path: string, host: string) =>
      new Promise<number>((resolve, reject) => {
        request({ port, path, headers: { host }, agent: false }, (answer) => {
          answer.resume()
          resolve(answer.statusCode!)
        })
          .on('error', reject)
          .end()
      })
    expect(await ask('/api/session', `127.0.0.1:${port}`)).toBe(200)
    expect(await ask('/api/session', `evil.test:${port}`)).toBe(421)
    expect(await ask('//127.0.0.1/api/session', `evil.test:${port}`)).toBe(421)
  })

  it('does not listen beyond loopback without a token, nor with a short one', async () => {
    const { ac } = await openSubscriptions()
    await expect(serveConsole(ac, { host: '0.0.0.0', port: 0 })).rejects.toThrow(/AFTERCOMMIT_CONSOLE_TOKEN/)
    await expect(serveConsole(ac, { port: 0, token: 'short' })).rejects.toThrow(/16 characters/)
  })

  it('lets in whoever knows the token, with a cookie that any process verifies, and slows down guessing', async () => {
    const { ac } = await openSubscriptions()
    const token = 'a-token-of-this-test'
    const [one, other] = await Promise.all([serveConsole(ac, { port: 0, token }), serveConsole(ac, { port: 0, token })])
    const signIn = (given: string) =>
      fetch(`${one.url}/api/sign-in`, { method: 'POST', headers: JSON_BODY, body: JSON.stringify({ token: given }) })
    try {
      expect((await fetch(`${one.url}/api/overview`)).status).toBe(401)
      const answer = await signIn(token)
      const cookie = answer.headers.get('set-cookie')!
      expect(cookie).toContain('HttpOnly; SameSite=Strict')
      const [value] = cookie.split(';')
      const session = await fetch(`${other.url}/api/session`, { headers: { cookie: value! } })
      expect(await session.json()).toMatchObject({ role: 'admin' })
      const forged = value!.replace(/\d{13}/, (end) => String(Number(end) + 1))
      expect((await fetch(`${one.url}/api/session`, { headers: { cookie: forged } })).status).toBe(401)
      const statuses: number[] = []
      for (let guess = 0; guess < 12; guess++) statuses.push((await signIn(`guess-${guess}-of-many`)).status)
      expect([statuses[0], statuses.at(-1)]).toEqual([401, 429])
      expect((await signIn(token)).status).toBe(200)
    } finally {
      await Promise.all([one.close(), other.close()])
    }
  })
})

describe('what it answers', () => {
  it('lists events with the fate of each, page by page, and hides payloads from viewers', async () => {
    const { ac, emitMany, read } = await openConsole()
    ac.subscribe({ id: 'mail', handle: () => {} })
    await ac.start()
    await emitMany(12)
    await eventually(async () => (await ac.subscriptions.get('mail').status()).lag === 0n)
    const first = await read('api/events?limit=5')
    expect(first.items.map(({ position }: { position: string }) => position)).toEqual(['12', '11', '10', '9', '8'])
    expect(first.items[0]).toMatchObject({ strip: [{ name: 'mail', state: 'done' }], summary: expect.any(String) })
    const second = await read(`api/events?limit=5&before=${first.next}`)
    expect(second.items[0].position).toBe('7')
    const one = await read('api/events?aggregate=lamp/3&limit=1')
    expect((await read(`api/events?aggregate=lamp/3&limit=1&before=${one.next}`)).items).toHaveLength(0)

    const viewer = createConsole(ac, { authorize: () => ({ who: 'eve', role: 'viewer' }) })
    const seen = async (path: string) =>
      (await viewer.fetch(new Request(`http://c.test/${path}`))).json() as Promise<Json>
    expect((await seen('api/events')).items[0]).not.toHaveProperty('summary')
    const { event } = await seen('api/events/event-1')
    expect(event).toMatchObject({ id: 'event-1' })
    expect(event).not.toHaveProperty('payload')
  })

  it('says in one sentence what is wrong, and mends it with the act beside it', async () => {
    const { ac, emit, read, post } = await openConsole()
    expect((await read('api/overview')).sentence).toContain('Nothing needs a decision')
    let isBroken = true
    ac.subscribe({
      id: 'mail',
      on: ['lamp.*'],
      retry: { maxAttempts: 1 },
      handle: () => {
        if (isBroken) throw new GiveUp('no ink')
      },
    })
    ac.subscribe({ id: 'paper', handle: () => {} })
    await ac.start()
    await emit('a', { key: '1' })
    await emit('b', { key: '1' })
    await eventually(async () => (await ac.deadLetters.count()) === 1)
    expect((await post('api/subscriptions/paper/pause', { reason: 'no paper' })).status).toBe(200)
    const { needs, sentence } = await read('api/overview')
    expect(sentence).toContain('One dead letter')
    expect(needs.map(({ title }: { title: string }) => title)).toEqual(['One dead letter', 'paper is paused'])
    expect((await post(`api/${needs[1].act.path}`, needs[1].act.body)).status).toBe(200)

    const { items: causes } = await read('api/dead-letters/causes')
    expect(causes).toMatchObject([{ owner: 'mail', message: 'no ink', count: 1, parked_keys: 1 }])
    const { items, count } = await read('api/dead-letters?status=dead')
    expect([count, items[0].event_id]).toEqual([1, 'a'])
    isBroken = false
    expect((await post('api/dead-letters/redrive', { filter: {} })).status).toBe(400)
    expect(await (await post('api/dead-letters/redrive', { filter: { owner: 'mail' } })).json()).toEqual({ count: 1 })
    await eventually(async () => (await read('api/overview')).needs.length === 0)

    const { items: acts } = await read('api/audit')
    expect(acts.map(({ who, what }: { who: string; what: string }) => `${who} ${what}`)).toEqual([
      'ada letter.redrive',
      'ada subscription.resume',
      'ada subscription.pause',
    ])
  })

  it('previews a seek without moving anything, then moves the checkpoint', async () => {
    const { ac, emitMany, post } = await openConsole()
    ac.subscribe({ id: 'mail', handle: () => {} })
    await ac.start()
    await emitMany(5)
    await eventually(async () => (await ac.subscriptions.get('mail').status()).lag === 0n)
    const preview = await post('api/subscriptions/mail/seek', { to: '2', preview: true })
    expect(await preview.json()).toMatchObject({ from: '5', to: '2', events: 3, direction: 'back' })
    expect((await ac.audit.list()).length).toBe(0)
    expect((await post('api/subscriptions/mail/seek', { to: 'nonsense' })).status).toBe(400)
    await post('api/subscriptions/mail/seek', { to: '2' })
    expect((await ac.audit.list())[0]).toMatchObject({ what: 'subscription.seek', target: 'mail' })
  })

  it('pushes the state of the log and new events to pages that watch, and asks nothing while none does', async () => {
    const { emit, call, sql } = await openConsole()
    const over = new AbortController()
    const answer = await call('api/stream?tail=1', { signal: over.signal })
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    let heard = ''
    const until = async (text: string) => {
      while (!heard.includes(text)) heard += (await reader.read()).value ?? ''
    }
    await until('event: status')
    await emit('a')
    await until('event: events')
    await until('"id":"a"')
    over.abort()
    await reader.cancel()
    const calls = `select sum(xact_commit + xact_rollback)::text as n from pg_stat_database where datname = current_database()`
    // The server counts late: two looks far enough apart that each look of a watch would be seen.
    const count = async () => Number((await sql.query(calls)).rows[0].n)
    await eventually(
      async () => {
        const before = await count()
        await sql.query('select pg_sleep(2.5)')
        return (await count()) - before <= 3
      },
      { every: 10 },
    )
  })
})
