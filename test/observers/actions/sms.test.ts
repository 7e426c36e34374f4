import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { httpReceiver, type Reply } from '../../support/receivers.ts'
import { failureOf, prepare, requestFor } from './support.ts'

const SID = 'SM0123456789abcdef0123456789abcdef'
const ACCOUNT = 'ACcanary0123456789'
const CONFIG = { to: '{{ phone }}', message: 'Hello {{ name }}, it is on its way' }
const payload = { phone: '+4915198765432', name: 'Ada' }

const says =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

/** As the API answers: what it was sent, and the id somewhere behind it. */
const taking: Reply = (response, { body }) => {
  const form = new URLSearchParams(body)
  says(201, { body: form.get('Body'), to: form.get('To'), status: 'queued', error_code: null, sid: SID })(
    response,
    undefined as never,
    1,
  )
}

async function smsWith(config: Record<string, unknown> = {}, reply: Reply = taking, from = '+12025550123') {
  const receiver = await httpReceiver(reply)
  const sms = { account: ACCOUNT, token: { reveal: () => 'canary-token' }, from, baseUrl: `${receiver.url}/api/` }
  // The operator's own address may be private: nothing is allowed here.
  return { receiver, action: prepare('sms', { ...CONFIG, ...config }, { providers: { sms }, allow: [] }) }
}

const request = (more: Parameters<typeof requestFor>[0] = {}) => requestFor({ action: 'sms', payload, ...more })

describe('an SMS', () => {
  it('is posted as a form to the account, and its id is in the result', async () => {
    const { receiver, action } = await smsWith()
    const result = await action.run(request())
    expect(result).toMatchObject({ actionType: 'sms', success: true, message: `queued as ${SID}` })
    const [call] = receiver.calls
    expect(call).toMatchObject({ method: 'POST', path: `/api/2010-04-01/Accounts/${ACCOUNT}/Messages.json` })
    expect(call?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from(`${ACCOUNT}:canary-token`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    })
    expect(Object.fromEntries(new URLSearchParams(call?.body))).toEqual({
      To: '+4915198765432',
      From: '+12025550123',
      Body: 'Hello Ada, it is on its way',
    })
  })

  it('is found in the record by its id, without the number and the text', async () => {
    const { action } = await smsWith({ message: '{{ name }}' })
    const name = 'grüße 🙂 '.repeat(120).trim()
    const result = await action.run(request({ payload: { ...payload, name } }))
    expect(JSON.parse(result.response?.body ?? '')).toEqual({ sid: SID, status: 'queued' })
    expect(inspect(result, { depth: 10 })).not.toMatch(/4915198765432|grüße|canary/)
  })

  it('names a messaging service as one', async () => {
    const { receiver, action } = await smsWith({}, taking, `MG${'0'.repeat(32)}`)
    await action.run(request())
    const form = new URLSearchParams(receiver.calls[0]?.body)
    expect([form.get('MessagingServiceSid'), form.get('From')]).toEqual([`MG${'0'.repeat(32)}`, null])
  })

  it('says where to tell what became of it, with the event it follows from', async () => {
    for (const [url, expected] of [
      ['https://shop.example.com/sms', 'https://shop.example.com/sms?aftercommit_event=a%2Fb'],
      ['https://shop.example.com/sms?x=1', 'https://shop.example.com/sms?x=1&aftercommit_event=a%2Fb'],
    ] as const) {
      const { receiver, action } = await smsWith({ status_callback: url })
      await action.run(request({ id: 'a/b' }))
      expect(new URLSearchParams(receiver.calls[0]?.body).get('StatusCallback')).toBe(expected)
    }
  })

  it('names the event so that its address is signed as it arrives', async () => {
    const { receiver, action } = await smsWith({ status_callback: 'https://shop.example.com/sms' })
    await action.run(request({ id: "it's (one)*!" }))
    const address = new URLSearchParams(receiver.calls[0]?.body).get('StatusCallback')!
    expect(new Request(address).url).toBe(address)
    expect(new URL(address).searchParams.get('aftercommit_event')).toBe("it's (one)*!")
  })

  it.each([
    '4915198765432',
    '+49 151 98765432',
    '+0151123456',
    '+4915198765432,+4915198765433',
    '+49151987654329012',
    '',
    '٠١٢٣٤٥٦٧',
    '+4915198765432\n',
  ])('to %j is not sent and never tried again', async (phone) => {
    const { receiver, action } = await smsWith()
    const error = await failureOf(() => action.run(request({ payload: { ...payload, phone } })))
    expect(error).toMatchObject({ code: 'OB009', transient: false })
    if (phone.trim() !== '') expect(error.message).not.toContain(phone.trim())
    expect(() => action.preview(request({ payload: { ...payload, phone } }))).toThrow('not one number')
    expect(receiver.connections).toBe(0)
  })

  it('of 1,600 characters is sent, a longer or empty one is not, and the length is told', async () => {
    const { receiver, action } = await smsWith({ message: '{{ name }}' })
    await action.run(request({ payload: { ...payload, name: 'x'.repeat(1_600) } }))
    for (const name of ['x'.repeat(1_601), '  ']) {
      const error = await failureOf(() => action.run(request({ payload: { ...payload, name } })))
      expect(error).toMatchObject({ code: 'OB009', transient: false })
      expect(error.message).toMatch(name.trim() === '' ? /empty/ : /1601 characters, and 1600 is the most/)
    }
    expect(receiver.calls).toHaveLength(1)
  })

  it.each([
    ['a number that is none', 400, 21_211, false],
    ['a person who said STOP', 400, 21_610, false],
    ['an error about the message, whatever the status', 503, 21_614, false],
    ['a queue that is full', 429, 21_611, true],
    ['too many requests', 429, 20_429, true],
    ['too many requests, told by its number alone', 400, 20_429, true],
    ['a wrong token', 401, 20_003, false],
    ['a fault of the API', 500, 20_500, true],
    ['a fault without a number', 502, undefined, true],
    ['a status of its own', 418, undefined, false],
  ])('that is refused for %s (%i, %s) is worth another attempt: %s', async (_, status, code, transient) => {
    const body = { code, message: `To ${payload.phone} (+49 151 98765432) by ${ACCOUNT}`, status }
    const { action } = await smsWith({}, says(status, body, { 'retry-after': '9' }))
    const error = await failureOf(() => action.run(request()))
    expect(error).toMatchObject({ code: 'OB009', transient, status, gone: false })
    expect(error.retryAfterMs).toBe(transient ? 9_000 : undefined)
    expect(error.message).toContain(code === undefined ? String(status) : `error ${code}`)
    expect(inspect(error, { depth: 10 })).not.toMatch(/15198765432|151 98765432|canary/i)
  })

  it.each([
    ['a UUID', { sid: '0198c2f4-3e12-7abc-9def-1e2345678901' }, 'accepted as 0198c2f4-3e12-7abc-9def-1e2345678901'],
    ['a short number', { sid: '42', status: 'sent' }, 'sent as 42'],
    ['no id', { hello: 1 }, 'accepted without an id'],
    ['an id that cannot be kept', { sid: '../x y' }, 'accepted without an id'],
    ['an answer of another kind', null, 'accepted without an id'],
  ])('that was answered with 2xx and %s is sent, so no attempt sends it again', async (_, body, message) => {
    const { action } = await smsWith({}, says(202, body))
    expect(await action.run(request())).toMatchObject({ actionType: 'sms', success: true, message })
  })

  it('that was answered with 2xx and a page is sent', async () => {
    const { action } = await smsWith({}, (response) => response.end('<html>'))
    expect(await action.run(request())).toMatchObject({ success: true, message: 'accepted without an id' })
  })

  it('that failed at once is no success', async () => {
    const failed = await smsWith({}, says(201, { sid: SID, status: 'failed', error_code: 30_001 }))
    expect(await failureOf(() => failed.action.run(request()))).toMatchObject({ code: 'OB009', transient: true })
  })

  it('without an answer is tried again', async () => {
    const { action } = await smsWith({}, (response) => response.destroy())
    expect(await failureOf(() => action.run(request()))).toMatchObject({ code: 'OB009', transient: true })
  })

  it('repeated by its receiver leaves nothing in the records', async () => {
    const { action } = await smsWith({}, (response, { body, headers }) =>
      response.writeHead(400).end(`${headers.authorization} ${body} ${decodeURIComponent(body)}`),
    )
    const error = await failureOf(() => action.run(request()))
    expect(error.detail.response?.body).toContain('***')
    expect(inspect(error, { depth: 10 })).not.toMatch(/4915198765432|Hello|canary/)
  })

  it('can be previewed, which asks nobody', async () => {
    const { receiver, action } = await smsWith()
    expect(action.preview(request())).toEqual({
      actionType: 'sms',
      destination: `sms ${receiver.url}`,
      content: { to: '+4915198765432', message: 'Hello Ada, it is on its way', characters: 27 },
    })
    expect(receiver.connections).toBe(0)
  })
})

describe('an sms action', () => {
  it('is refused without its provider, and with what can never be sent, all at once', async () => {
    const error = await failureOf(() => prepare('sms', { to: '0151 1', message: 'x'.repeat(2_000) }))
    const { mistakes } = error as unknown as { mistakes: { path: unknown; message: string }[] }
    expect(mistakes.map(({ path }) => path)).toEqual([[], ['to'], ['message']])
    expect(mistakes[0]?.message).toContain('[providers.sms]')
  })

  it('is refused with a provider that cannot be right, without repeating it', async () => {
    const good = { account: ACCOUNT, token: 'canary', from: '+12025550123' }
    for (const [wrong, key] of [
      [{ account: 'canary/../x' }, 'account'],
      [{ from: 'canary is much too long' }, 'from'],
      [{ baseUrl: 'https://canary:canary@api.example.com' }, 'base_url'],
      [{ baseUrl: 'https://api.example.com/?canary' }, 'base_url'],
    ] as const) {
      const error = await failureOf(() => prepare('sms', CONFIG, { providers: { sms: { ...good, ...wrong } } }))
      expect(error).toMatchObject({ code: 'OB012', path: ['providers', 'sms', key] })
      expect(error.message).not.toContain('canary')
    }
    for (const from of ['+12025550123', '12345', 'My Shop', `MG${'a'.repeat(32)}`])
      prepare('sms', CONFIG, { providers: { sms: { ...good, from } } })
  })
})
