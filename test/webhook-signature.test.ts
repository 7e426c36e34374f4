import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { signWebhook, toSigningKey, verifyWebhook } from '../src/webhook-signature.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
const body = '{"total":9007199254740993,"name":"Grüße"}'
const now = new Date()
const seconds = Math.floor(now.getTime() / 1_000)

function headersFor(secrets: string[], { id = 'msg_1', at = seconds, text = body } = {}): Record<string, string> {
  const signature = signWebhook(secrets.map(toSigningKey), id, at, text)
  return { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': signature }
}

describe('what we sign', () => {
  it('is accepted by the library of the standard', () => {
    expect(() => new Webhook(secret).verify(body, headersFor([secret]))).not.toThrow()
    const plain = 'a plain text secret'
    expect(() => new Webhook(plain, { format: 'raw' }).verify(body, headersFor([plain]))).not.toThrow()
  })

  it('is the very text that the library makes', () => {
    const signature = signWebhook([toSigningKey(secret)], 'msg_1', seconds, body)
    expect(signature).toBe(new Webhook(secret).sign('msg_1', new Date(seconds * 1_000), body))
  })

  it('carries one signature per secret while one replaces another', () => {
    const headers = headersFor([secret, other])
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
    for (const accepted of [secret, other]) expect(() => new Webhook(accepted).verify(body, headers)).not.toThrow()
  })
})

describe('verifyWebhook', () => {
  it('accepts what the library of the standard signed', () => {
    const signature = new Webhook(secret).sign('msg_9', now, body)
    const headers = { 'Webhook-Id': 'msg_9', 'Webhook-Timestamp': String(seconds), 'Webhook-Signature': signature }
    expect(verifyWebhook(secret, headers, body)).toEqual({ id: 'msg_9', timestamp: new Date(seconds * 1_000) })
    expect(verifyWebhook([other, secret], new Headers(headers), Buffer.from(body)).id).toBe('msg_9')
  })

  it('accepts one fitting signature among others', () => {
    const headers = headersFor([secret])
    const signatures = `v1a,xyz v1,AAAA v2,abc ${headers['webhook-signature']}`
    expect(verifyWebhook(secret, { ...headers, 'webhook-signature': signatures }, body).id).toBe('msg_1')
  })

  it.each([
    ['another body', headersFor([secret]), `${body} `],
    ['another id', { ...headersFor([secret]), 'webhook-id': 'msg_2' }, body],
    ['another secret', headersFor([other]), body],
    ['another time', { ...headersFor([secret]), 'webhook-timestamp': String(seconds - 1) }, body],
    ['no signature', { ...headersFor([secret]), 'webhook-signature': '' }, body],
    ['an empty signature', { ...headersFor([secret]), 'webhook-signature': 'v1,' }, body],
    ['a signature of another scheme', { ...headersFor([secret]), 'webhook-signature': 'v0,abc' }, body],
    ['no id', { 'webhook-timestamp': '1', 'webhook-signature': 'v1,x' }, body],
    ['a time that is no number', { ...headersFor([secret]), 'webhook-timestamp': '1e3' }, body],
  ])('refuses %s', (_, headers, text) => {
    expect(() => verifyWebhook(secret, headers, text)).toThrow(expect.objectContaining({ code: 'BAD_SIGNATURE' }))
  })

  it('refuses what is older than the tolerance or from the future', () => {
    const verifyAt = (offset: number) =>
      verifyWebhook(secret, headersFor([secret]), body, { now: new Date((seconds + offset) * 1_000) })
    expect(() => verifyAt(301)).toThrow('too old')
    expect(() => verifyAt(-301)).toThrow('future')
    expect(verifyAt(299).id).toBe('msg_1')
    const strict = { tolerance: '5s', now: new Date((seconds + 6) * 1_000) }
    expect(() => verifyWebhook(secret, headersFor([secret]), body, strict)).toThrow('too old')
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 300, '5 minutes', '', null, {}])(
    'refuses the tolerance %s, which would accept any age',
    (tolerance) => {
      const old = headersFor([secret], { at: seconds - 86_400 })
      expect(() => verifyWebhook(secret, old, body, { tolerance: tolerance as string })).toThrow(
        expect.objectContaining({ code: 'BAD_DURATION' }),
      )
    },
  )

  it('refuses an invalid date as now', () => {
    expect(() => verifyWebhook(secret, headersFor([secret]), body, { now: new Date(Number.NaN) })).toThrow(
      expect.objectContaining({ code: 'BAD_OPTION' }),
    )
  })

  it('refuses an id with a dot, where a part of the body could pass for the timestamp', () => {
    const old = seconds - 86_400
    const genuine = headersFor([secret], { at: old, text: `${seconds}.${body}` })
    const shifted = { ...genuine, 'webhook-id': `msg_1.${old}`, 'webhook-timestamp': String(seconds) }
    expect(() => verifyWebhook(secret, shifted, body)).toThrow(
      expect.objectContaining({ code: 'BAD_SIGNATURE', message: expect.stringContaining('dot') }),
    )
  })

  it.each([{ a: 1 }, undefined, null])('asks for the raw bytes when it is given %j as the body', (parsed) => {
    expect(() => verifyWebhook(secret, headersFor([secret]), parsed as never)).toThrow(
      expect.objectContaining({ code: 'BAD_OPTION', message: expect.stringContaining('express.raw') }),
    )
  })

  it('says nothing of the secret or the body', () => {
    const error = (() => {
      try {
        verifyWebhook(secret, headersFor([other]), body)
      } catch (reason) {
        return String(reason)
      }
    })()
    expect(error).not.toContain(secret.slice(6, 20))
    expect(error).not.toContain('total')
  })
})

describe('a secret', () => {
  it.each(['', 'short', 'whsec_', 'whsec_!!!', `whsec_${Buffer.alloc(10).toString('base64')}`])(
    'like %j is refused',
    (bad) => expect(() => toSigningKey(bad)).toThrow(expect.objectContaining({ code: 'BAD_OPTION' })),
  )

  it.each([undefined, null, 5, [undefined]])('that is %j is refused by its name', (bad) =>
    expect(() => verifyWebhook(bad as never, headersFor([secret]), body)).toThrow(
      expect.objectContaining({ code: 'BAD_OPTION', message: expect.stringContaining('missing or not text') }),
    ),
  )

  it('is never an empty list', () => expect(() => verifyWebhook([], headersFor([secret]), body)).toThrow('empty list'))
})
