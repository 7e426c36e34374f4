/** Publishing over HTTP: what is appended, what is a repetition, what is refused, and what happens without a database. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/events/index.ts'
import { signWebhook, toSigningKey } from '../../src/webhook-signature.ts'
import { instance, SERVERS } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { createProxy } from '../support/proxy.ts'
import { endpoint, lamp, openInbound, send, serve, TOKEN } from './inbound-support.ts'

describe('events from outside', () => {
  it.each(SERVERS)('are appended one by one and in batches, on PostgreSQL $major', async ({ major }) => {
    const { ac, address } = await openInbound({}, { major })
    const one = await send(address, lamp('1', { aggregatetype: 'lamp', aggregateid: '7' }))
    expect(one.status).toBe(202)
    const [first] = one.body.events!
    expect(await ac.log.get(first!.id)).toMatchObject({
      type: 'lamp.lit',
      aggregateType: 'lamp',
      aggregateId: '7',
      payload: { watts: 9 },
      position: BigInt(first!.position),
      metadata: { source: 'https://house.example', source_id: '1', depth: 0, causationId: null },
    })
    const many = await send(address, [lamp('2'), lamp('1', { aggregatetype: 'lamp', aggregateid: '7' }), lamp('3')])
    expect(many.status).toBe(202)
    expect(many.body.events!.map(({ duplicate }) => duplicate)).toEqual([false, true, false])
    expect(many.body.events![1]).toEqual({ ...first, duplicate: true })
    const stored = await ac.log.read({})
    expect(stored.map(({ metadata }) => metadata.source_id)).toEqual(['1', '2', '3'])
  })

  it('may have their attributes in headers', async () => {
    const { ac, address } = await openInbound()
    const headers = {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/h%C3%B6use',
      'ce-type': 'lamp.lit',
      'ce-correlationid': 'evening',
    }
    const { status, body } = await send(address, '{"big": 12345678901234567890}', { headers })
    expect(status).toBe(202)
    const stored = await ac.log.get(body.events![0]!.id)
    expect(stored).toMatchObject({ payload: { big: 12345678901234567890n }, metadata: { correlationId: 'evening' } })
    expect(stored!.metadata.source).toBe('/höuse')
  })

  it('are in the log once however often they are sent, and at once', async () => {
    const { ac, another, address } = await openTwo()
    const ids = ['1', '2', '3', '4']
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        send(
          n % 2 ? address : another,
          (n % 3 ? ids : ids.toReversed()).map((id) => lamp(id)),
        ),
      ),
    )
    expect(answers.map(({ status }) => status).filter((status) => status !== 202 && status !== 200)).toEqual([])
    const told = answers.flatMap(({ body }) => body.events!)
    expect(told.filter(({ duplicate }) => !duplicate)).toHaveLength(4)
    expect(new Set(told.map(({ id, position }) => `${id} ${position}`)).size).toBe(4)
    expect(await ac.log.read({})).toHaveLength(4)
    const again = await send(address, lamp('1'))
    expect([again.status, again.body.events![0]!.duplicate]).toEqual([200, true])
  })

  it('are duplicates when their sender builds them anew with another time', async () => {
    const { ac, address } = await openInbound()
    await send(address, lamp('1', { time: '2026-03-01T12:00:00Z' }))
    const again = await send(address, lamp('1', { time: '2026-03-01T12:00:09Z', correlationid: 'x' }))
    expect([again.status, again.body.events![0]!.duplicate]).toEqual([200, true])
    expect(await ac.log.read({})).toHaveLength(1)
  })

  it('are refused when an id comes again with other content, with everything beside it', async () => {
    const { ac, address } = await openInbound()
    await send(address, lamp('1'))
    const other = await send(address, [lamp('2'), lamp('1', { data: { watts: 10 } })])
    expect(other.status).toBe(409)
    expect(other.headers.get('content-type')).toBe('application/problem+json')
    expect(other.body.errors).toEqual([{ index: 1, field: 'id', detail: expect.any(String) }])
    const within = await send(address, [lamp('3'), lamp('3'), lamp('3', { data: 1 })])
    expect([within.status, within.body.errors]).toEqual([409, [expect.objectContaining({ index: 2 })]])
    expect((await send(address, [lamp('4'), lamp('4')])).body.events!.map((one) => one.duplicate)).toEqual([
      false,
      true,
    ])
    expect((await ac.log.read({})).map(({ metadata }) => metadata.source_id)).toEqual(['1', '4'])
  })

  it('are refused with every mistake of a batch, and nothing of it is appended', async () => {
    const events = defineEvents({ 'lamp.lit': z.object({ watts: z.number() }) })
    const { ac, address } = await openInbound({}, { events })
    const { status, body } = await send(address, [
      lamp('1'),
      lamp('', { type: 'auth.login' }),
      'lamp',
      lamp('2', { data: { watts: '9' }, time: 'noon' }),
    ])
    expect(status).toBe(400)
    expect(body.errors).toEqual([
      { index: 1, field: 'id', detail: 'is missing or empty' },
      { index: 1, field: 'type', detail: 'may not be published here' },
      { index: 2, field: '', detail: 'is not a JSON object' },
      { index: 3, field: 'time', detail: expect.any(String) },
      { index: 3, field: 'data.watts', detail: expect.any(String) },
    ])
    expect(await ac.log.read({})).toEqual([])
  })

  it('are stored as the schema of their type gives them', async () => {
    const events = defineEvents({ 'lamp.lit': z.object({ watts: z.string().transform(Number) }) })
    const { ac, address } = await openInbound({}, { events })
    const { body } = await send(address, lamp('1', { data: { watts: '9', colour: 'red' } }))
    expect((await ac.log.get(body.events![0]!.id))!.payload).toEqual({ watts: 9 })
    expect((await send(address, lamp('1', { data: { watts: '9', colour: 'red' } }))).status).toBe(200)
  })

  it('may be none at all', async () => {
    const { address } = await openInbound()
    expect(await send(address, [])).toMatchObject({ status: 200, body: { events: [] } })
  })

  it('are counted by what became of them', async () => {
    const { ac, address } = await openInbound()
    await send(address, [lamp('1'), lamp('2')])
    await send(address, [lamp('1')])
    await send(address, [lamp('1', { data: 0 })])
    await send(address, [lamp('', {}), lamp('9')])
    await send(address, lamp('1'), { headers: { authorization: 'Bearer wrong' } })
    const text = await ac.metrics()
    const counts = [...text.matchAll(/aftercommit_inbound_events_total\{outcome="(\w+)"\} (\d+)/g)]
    expect(Object.fromEntries(counts.map(([, outcome, n]) => [outcome, Number(n)]))).toEqual({
      accepted: 2,
      duplicate: 1,
      conflict: 1,
      invalid: 2,
      unauthorized: 1,
    })
  })
})

describe('who may publish', () => {
  it.each([
    ['no token', {}],
    ['another token', { authorization: 'Bearer another-token-that-is-long' }],
    ['another scheme', { authorization: `Basic ${TOKEN}` }],
    ['the token and more', { authorization: `Bearer ${TOKEN} ${TOKEN}` }],
    ['an empty token', { authorization: 'Bearer ' }],
  ])('is nobody with %s', async (_, headers) => {
    const { ac, address } = await openInbound()
    const {
      status,
      body,
      headers: answered,
    } = await send(address, lamp('1'), {
      headers: { authorization: '', ...headers },
    })
    expect(status).toBe(401)
    expect(body.detail).toBe('This request is not from anybody who may publish here.')
    expect(answered.get('www-authenticate')).toBe('Bearer')
    expect(await ac.log.read({})).toEqual([])
  })

  it('is whoever a function finds behind a token, and the events are theirs', async () => {
    const people = new Map([
      ['token-of-ada', { name: 'ada', house: 'north' }],
      ['token-of-bob', { name: 'bob', house: 'south' }],
    ])
    const { ac, address } = await openInbound({
      token: async (token) => people.get(token),
      identity: ({ name, house }: { name: string; house: string }) => ({ user: name, tenant: house }),
    })
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
    const forged = lamp('1', { tenant: 'castle', userid: 'root' })
    const [ada] = (await send(address, forged, as('token-of-ada'))).body.events!
    // The same id of another tenant is another event, and says nothing of the first.
    const [bob] = (await send(address, lamp('1', { data: 0 }), as('token-of-bob'))).body.events!
    expect(await ac.log.get(ada!.id)).toMatchObject({ tenant: 'north', metadata: { userId: 'ada' } })
    expect(await ac.log.get(bob!.id)).toMatchObject({ tenant: 'south', metadata: { userId: 'bob' } })
    expect((await send(address, lamp('2'), as('token-of-eve'))).status).toBe(401)
  })

  it('is nobody whom `identity` does not know', async () => {
    const { address } = await openInbound({ identity: () => null })
    expect((await send(address, lamp('1'))).status).toBe(401)
  })

  it('stays open when the check itself fails: no entry, no refusal for good, no word of why', async () => {
    const { logger, lines } = collectingLogger()
    const token = () => Promise.reject(new Error('users are kept at db.internal'))
    const { address } = await openInbound({ token }, { logger })
    const { status, body, headers } = await send(address, lamp('1'))
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
    expect(JSON.stringify(body)).not.toContain('internal')
    expect(lines).toContain('error events from outside could not be taken')
  })

  it('is whoever signs the body as Standard Webhooks does, lately, and nobody else', async () => {
    const [secret, older, strange] = ['secret-of-the-house', 'secret-of-last-year', 'secret-of-a-stranger']
    const { ac, address } = await openInbound({ secret: [secret!, older!] })
    const signed = (key: string, { body = JSON.stringify(lamp('1')), age = 0 } = {}) => {
      const seconds = Math.floor(Date.now() / 1_000) - age
      const signature = signWebhook([toSigningKey(key)], 'msg_1', seconds, body)
      return { 'webhook-id': 'msg_1', 'webhook-timestamp': String(seconds), 'webhook-signature': signature }
    }
    const answers = [
      await send(address, lamp('1'), { headers: signed(secret!) }),
      await send(address, lamp('1'), { headers: signed(older!) }),
      await send(address, lamp('1'), { headers: signed(strange!) }),
      await send(address, lamp('1'), { headers: signed(secret!, { age: 301 }) }),
      await send(address, lamp('1'), { headers: signed(secret!, { age: -301 }) }),
      await send(address, lamp('2'), { headers: signed(secret!) }),
      await send(address, lamp('2')),
    ]
    expect(answers.map(({ status }) => status)).toEqual([202, 200, 401, 401, 401, 401, 401])
    expect(await ac.log.read({})).toHaveLength(1)
  })

  it.each<[string, { token?: string; secret: string }]>([
    ['with a secret', { secret: 'secret-of-the-house' }],
    ['with a secret and a token', { secret: 'secret-of-the-house', token: TOKEN }],
  ])('%s refuses a signed request that is replayed with other `ce-` headers', async (_, options) => {
    const { ac, address } = await openInbound({ allow: ['*'], ...options })
    const seconds = String(Math.floor(Date.now() / 1_000))
    const captured = JSON.stringify(lamp('1'))
    const signature = signWebhook([toSigningKey(options.secret)], 'msg_1', Number(seconds), captured)
    const signed = { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': signature }
    const forged = { 'ce-specversion': '1.0', 'ce-id': '2', 'ce-source': '/thief', 'ce-type': 'money.moved' }
    const answers = [
      await send(address, captured, { headers: { ...signed, ...forged, 'content-type': 'application/json' } }),
      await send(address, captured, { headers: { ...signed, 'content-type': 'application/cloudevents-batch+json' } }),
      await send(address, captured, { headers: { ...signed, ...forged } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([415, 400, 202])
    expect((await ac.log.read({})).map(({ type }) => type)).toEqual(['lamp.lit'])
  })

  it('needs both where a token and a secret are asked for, and is not told which was wrong', async () => {
    const secret = 'secret-of-the-house'
    const { address } = await openInbound({ token: TOKEN, secret })
    const seconds = Math.floor(Date.now() / 1_000)
    const signature = signWebhook([toSigningKey(secret)], 'msg_1', seconds, JSON.stringify(lamp('1')))
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(seconds), 'webhook-signature': signature }
    const unsigned = await send(address, lamp('1'))
    const untold = await send(address, lamp('1'), { headers: { ...headers, authorization: '' } })
    expect([unsigned.status, untold.status]).toEqual([401, 401])
    expect(unsigned.body).toEqual(untold.body)
    expect((await send(address, lamp('1'), { headers })).status).toBe(202)
  })
})

describe('without a database', () => {
  it('answers 503 with a time to come back, and takes the same events afterwards once', async () => {
    const { ac, url } = await openInbound()
    const proxy = await createProxy(url)
    const far = instance({ database: proxy.url })
    const inbound = endpoint(far)
    const address = await serve((req, res) => void inbound.node(req, res))
    proxy.reset()
    const away = await send(address, [lamp('1'), lamp('2')])
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '5'])
    expect(JSON.stringify(away.body)).not.toMatch(/127\.0\.0\.1|postgres/)
    proxy.pass()
    const cut = await (async () => {
      proxy.cutOnCommit()
      return send(address, [lamp('1'), lamp('2')])
    })()
    expect(cut.status).toBe(503)
    proxy.pass()
    const back = await eventually(async () => {
      const answer = await send(address, [lamp('1'), lamp('2')])
      return answer.status < 300 && answer
    })
    expect(back.body.events!.map(({ duplicate }) => duplicate)).toEqual([true, true])
    expect(await ac.log.read({})).toHaveLength(2)
  })

  it('answers 503 once the instance was stopped', async () => {
    const { ac, address } = await openInbound()
    await ac.stop()
    expect((await send(address, lamp('1'))).status).toBe(503)
  })
})

async function openTwo() {
  const { ac, url, address } = await openInbound()
  const inbound = endpoint(instance({ database: url }))
  return { ac, address, another: await serve((req, res) => void inbound.node(req, res)) }
}
