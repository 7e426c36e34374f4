import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { toErrorRecord } from '../../../src/dead-letters/error-record.ts'
import { createTestClock, summarizeError } from '../../../src/runtime/index.ts'
import { closedPort, httpReceiver, type Reply } from '../../support/receivers.ts'
import { smtpReceiver } from '../../support/receivers-smtp.ts'
import { failureOf, prepare, requestFor } from './support.ts'

const secret = `whsec_${Buffer.from('canary-canary-canary-canary-canary!').toString('base64')}`
const canaries = /canary|Y2FuYXJ5/i

/** Everything that may be kept or printed of a failure. */
function tracesOf(error: unknown): string {
  const summary = summarizeError(error, { stack: true })
  return [inspect(error, { depth: 10, showHidden: true }), JSON.stringify([toErrorRecord(error), summary])].join('\n')
}

const webhook = (base: string) => ({
  url: `${base}/hooks/a1b2c3d4e5f6canary7890?token=canary&x={{ value }}`,
  headers: {
    authorization: { reveal: () => 'Bearer canary-bearer-token' },
    'x-api-key': 'canary-literal-key',
    'x-value': '{{ value }}',
  },
  body: { value: '{{ value }}' },
  secret: { reveal: () => secret },
})

const echo: Reply = (response, call) =>
  response.writeHead(500).end(`${JSON.stringify(call.headers)} ${call.path} ${call.body}`)

const silence: Reply = () => {}

it.each<[string, Reply]>([
  ['refuses', (response) => response.writeHead(400).end('no')],
  ['breaks', (response) => response.writeHead(503).end('no')],
  ['redirects', (response) => response.writeHead(302, { location: 'https://canary.example/' }).end()],
  ['hangs up', (response) => response.destroy()],
  ['does not answer', silence],
])('a webhook whose receiver %s leaves no secret behind', async (_, reply) => {
  const clock = createTestClock()
  const receiver = await httpReceiver((...call) => {
    reply(...call)
    if (reply === silence) void clock.advance(200)
  })
  const action = prepare('webhook', { ...webhook(receiver.url), timeout: '200ms' }, { clock })
  const error = await failureOf(() => action.run(requestFor({ payload: { value: 'canary-payload' } })))
  expect(receiver.calls[0]?.body).toContain('canary-payload')
  expect(tracesOf(error)).not.toMatch(canaries)
})

it('a receiver that repeats the headers it got does not get them into the records', async () => {
  const receiver = await httpReceiver(echo)
  const action = prepare('webhook', {
    ...webhook(receiver.url),
    body: { value: 1 },
    url: `${receiver.url}/?x={{ value }}`,
  })
  const error = await failureOf(() => action.run(requestFor({ payload: { value: 'harmless' } })))
  expect(error.detail.response?.body).toContain('***')
  expect(tracesOf(error)).not.toMatch(canaries)
})

it('a webhook that succeeds leaves no secret behind either', async () => {
  const receiver = await httpReceiver((response) => response.end('thanks'))
  const action = prepare('webhook', webhook(receiver.url))
  const result = await action.run(requestFor({ payload: { value: 'canary-payload' } }))
  expect(inspect([result, action], { depth: 10 })).not.toMatch(canaries)
  expect(result.request).toMatchObject({ url: `${receiver.url}/hooks/***?token=***&x=***`, method: 'POST' })
  expect(result.request?.headers).toMatchObject({ authorization: '***', 'x-api-key': '***', 'x-value': '***' })
})

it('a webhook with secrets in the wrong place is refused without repeating them', async () => {
  for (const config of [
    { url: 'https://canary:canary@a.example/' },
    { url: 'https://a.example/', headers: { 'bad name': 'canary' } },
    { url: 'https://a.example/', headers: { 'x-a': { reveal: () => 'canary\n' } } },
    { url: 'https://a.example/', secret: 'canary' },
  ]) {
    expect(tracesOf(await failureOf(() => prepare('webhook', config)))).not.toMatch(canaries)
  }
})

it('Slack leaves the secret of its address nowhere', async () => {
  for (const reply of [echo, ((response) => response.destroy()) as Reply]) {
    const receiver = await httpReceiver(reply)
    const webhookUrl = `${receiver.url}/services/T0CANARY1/B0CANARY2/canary34567890`
    const action = prepare(
      'slack',
      { message: 'x' },
      { providers: { slack: { webhookUrl: { reveal: () => webhookUrl } } } },
    )
    expect(tracesOf(await failureOf(() => action.run(requestFor())))).not.toMatch(canaries)
  }
})

it('mail leaves neither credentials nor addresses anywhere', async () => {
  const config = { to: '{{ email }}', subject: 'x', text: 'x' }
  const payload = { email: 'canary@example.com' }
  const refusing = await smtpReceiver({ recipient: (address) => [550, `no ${address}`] })
  const locked = await smtpReceiver({ user: 'canary-user', password: 'other' })
  for (const url of [
    refusing.url,
    locked.url.replace('other', 'canary-password'),
    `smtp://canary-user:canary-password@127.0.0.1:${await closedPort()}`,
  ]) {
    const action = prepare('email', config, { providers: { smtp: { url, from: 'shop@example.com' } } })
    expect(tracesOf(await failureOf(() => action.run(requestFor({ payload }))))).not.toMatch(canaries)
  }
})
