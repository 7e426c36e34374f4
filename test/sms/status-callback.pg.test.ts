import { describe, expect, it } from 'vitest'
import { signCallback } from '../../src/sms/signature.ts'
import { openLog } from '../log/support/open-log.ts'

const TOKEN = 'canary-token'
const URL_OUTSIDE = 'https://shop.example.com/sms/status'
const SID = 'SM0123456789abcdef0123456789abcdef'

/** As the API calls, by way of a proxy that has another name. */
function callback(fields: Record<string, string>, { query = '', token = TOKEN, signature = '' } = {}): Request {
  const body = new URLSearchParams(fields)
  return new Request(`http://10.0.0.3:8080/status${query}`, {
    method: 'POST',
    body: body.toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-twilio-signature': signature || signCallback(token, URL_OUTSIDE + query, body),
    },
  })
}

async function open() {
  const log = await openLog()
  const handle = log.ac.sms.statusCallback({ token: TOKEN, url: URL_OUTSIDE })
  const events = async () => (await log.ac.log.read()).map(({ type, payload }) => ({ type, payload }))
  return { ...log, handle, events }
}

const delivered = { MessageSid: SID, MessageStatus: 'delivered', To: '+4915112345678', AccountSid: 'AC1' }

describe('the status of a message', () => {
  it('becomes an event of the log, once, however often it is told, and the number is masked', async () => {
    const { ac, handle, events } = await open()
    for (let told = 0; told < 3; told++) {
      expect((await handle(callback(delivered, { query: '?aftercommit_event=evt-1' }))).status).toBe(204)
    }
    expect(await events()).toEqual([
      {
        type: 'sms.delivered',
        payload: { sid: SID, status: 'delivered', to: '***678', error_code: null, event_id: 'evt-1' },
      },
    ])
    const [event] = await ac.log.read()
    expect(event).toMatchObject({ aggregateType: 'sms', aggregateId: SID, metadata: { causationId: 'evt-1' } })
  })

  it('is kept for ids of every shape that the sms action takes', async () => {
    const { ac, handle } = await open()
    const ids = ['0198c2f4-3e12-7abc-9def-1e2345678901', '42', 'msg:eu.1~7']
    for (const MessageSid of ids) expect((await handle(callback({ ...delivered, MessageSid }))).status).toBe(204)
    expect((await ac.log.read()).map(({ aggregateId }) => aggregateId)).toEqual(ids)
  })

  it('tells why a message failed', async () => {
    const { handle, events } = await open()
    await handle(callback({ ...delivered, MessageStatus: 'undelivered', ErrorCode: '30003' }))
    await handle(callback({ ...delivered, MessageStatus: 'failed', ErrorCode: 'x' }))
    expect(await events()).toMatchObject([
      { type: 'sms.failed', payload: { status: 'undelivered', error_code: 30_003, event_id: null } },
      { type: 'sms.failed', payload: { status: 'failed', error_code: null } },
    ])
  })

  it('on the way, or of no message, is heard and not kept', async () => {
    const { handle, events } = await open()
    for (const change of [{ MessageStatus: 'sent' }, { MessageStatus: '__proto__' }, { MessageSid: '../x' }])
      expect((await handle(callback({ ...delivered, ...change }))).status).toBe(204)
    expect(await events()).toEqual([])
  })

  it('that is not signed by the account is refused', async () => {
    const { handle, events } = await open()
    const signature = signCallback(TOKEN, URL_OUTSIDE, new URLSearchParams({ ...delivered, MessageStatus: 'failed' }))
    for (const wrong of [{ token: 'another' }, { signature: 'x' }, { signature }])
      expect((await handle(callback(delivered, wrong))).status).toBe(403)
    const moved = callback(delivered)
    const elsewhere = new Request(`${moved.url}?aftercommit_event=evt-2`, moved)
    expect((await handle(elsewhere)).status).toBe(403)
    expect(await events()).toEqual([])
  })

  it('that is no POST, or longer than any status, is refused', async () => {
    const { handle } = await open()
    expect((await handle(new Request('http://localhost/'))).status).toBe(405)
    expect((await handle(callback({ ...delivered, x: 'y'.repeat(70_000) }))).status).toBe(413)
  })

  it('is asked for again while the database is away', async () => {
    const { ac, handle } = await open()
    await ac.stop()
    expect((await handle(callback(delivered))).status).toBe(503)
  })
})

it('a handler needs a token and an address', async () => {
  const { ac } = await openLog()
  for (const options of [
    { token: '', url: URL_OUTSIDE },
    { token: TOKEN, url: 'shop.example.com' },
    { token: TOKEN, url: `${URL_OUTSIDE}?x=1` },
  ]) {
    expect(() => ac.sms.statusCallback(options)).toThrow(expect.objectContaining({ code: 'BAD_OPTION' }))
  }
})
