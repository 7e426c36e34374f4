/**
 * A push service as browsers have one. It holds senders to the standards: RFC 8030 for the request, RFC 8292 for who
 * sends, RFC 8291 for the message, which it opens with the keys that only the browser has.
 */
import { createDecipheriv, createECDH, createHmac, createPublicKey, type ECDH, randomBytes, verify } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import { selfSigned } from './certificate.ts'

export interface Browser {
  /** What `PushSubscription.toJSON()` would give. */
  readonly subscription: { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } }
  /** What arrived, opened. */
  readonly messages: { readonly text: string; readonly headers: IncomingHttpHeaders }[]
  /** Requests, answered well or not. */
  calls: number
  /** The next answers, in order; then 201 again. */
  readonly answers: ((response: ServerResponse) => void)[]
}

export interface PushServiceDouble {
  readonly origin: string
  /** Vouches for it. */
  readonly ca: string
  subscribe(): Browser
  /** What the service found wrong with requests. */
  readonly complaints: string[]
}

/** Takes messages only from whoever has this key. */
export async function pushService(applicationServerKey: string): Promise<PushServiceDouble> {
  const { key, cert } = selfSigned({ ip: '127.0.0.1' })
  const browsers = new Map<string, Browser & { readonly curve: ECDH }>()
  const complaints: string[] = []
  const sockets = new Set<Duplex>()
  let origin = ''

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const browser = browsers.get(request.url ?? '')
    if (browser === undefined) return void response.writeHead(404).end()
    browser.calls++
    const answer = browser.answers.shift()
    if (answer !== undefined) return answer(response)
    const complaint = wrongRequest(request.headers, body) ?? wrongSender(request.headers, origin, applicationServerKey)
    if (complaint !== undefined) {
      complaints.push(complaint.why)
      return void response.writeHead(complaint.status).end(complaint.why)
    }
    browser.messages.push({ text: open(body, browser), headers: request.headers })
    response.writeHead(201, { location: `${origin}/message/1` }).end()
  }

  const server = createServer({ key, cert }, (request, response) => {
    handle(request, response).catch((error) => {
      complaints.push(String(error))
      response.writeHead(400).end()
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })

  return {
    origin,
    ca: cert,
    complaints,
    subscribe() {
      const curve = createECDH('prime256v1')
      curve.generateKeys()
      const path = `/push/${randomBytes(24).toString('base64url')}`
      const keys = { p256dh: curve.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') }
      const subscription = { endpoint: origin + path, expirationTime: null, keys }
      const browser = { subscription, messages: [], calls: 0, answers: [], curve }
      browsers.set(path, browser)
      return browser
    },
  }
}

interface Complaint {
  readonly status: number
  readonly why: string
}

function wrongRequest(headers: IncomingHttpHeaders, body: Buffer): Complaint | undefined {
  if (!/^\d+$/.test(String(headers.ttl))) return { status: 400, why: 'no TTL' }
  if (headers['content-encoding'] !== 'aes128gcm') return { status: 415, why: 'not aes128gcm' }
  if (!/^(very-low|low|normal|high)$/.test(String(headers.urgency))) return { status: 400, why: 'wrong urgency' }
  if (!/^[\w-]{1,32}$/.test(String(headers.topic))) return { status: 400, why: 'wrong topic' }
  return body.length > 4_096 ? { status: 413, why: 'too long' } : undefined
}

function wrongSender({ authorization = '' }: IncomingHttpHeaders, origin: string, key: string): Complaint | undefined {
  const [, token = '', shown] = /^vapid t=([^,]+), ?k=(.+)$/.exec(authorization) ?? []
  if (shown !== key) return { status: 403, why: 'another key than the subscription is bound to' }
  const [head = '', claims = '', signature = ''] = token.split('.')
  const point = Buffer.from(key, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
  const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x!, y: y! }, format: 'jwk' })
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key: publicKey, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned) return { status: 403, why: 'not signed by its key' }
  const { aud, exp, sub } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const now = Date.now() / 1_000
  if (aud !== origin) return { status: 403, why: `for ${aud}` }
  if (!(exp > now && exp <= now + 86_400)) return { status: 403, why: 'expired, or valid for too long' }
  return /^(mailto:|https:)/.test(sub) ? undefined : { status: 403, why: 'no subject' }
}

/** RFC 8291, section 3, and one record of RFC 8188. */
function open(body: Buffer, { curve, subscription: { keys } }: Browser & { readonly curve: ECDH }): string {
  const salt = body.subarray(0, 16)
  const idLength = body.readUInt8(20)
  const sender = body.subarray(21, 21 + idLength)
  const hmac = (key: Buffer, ...parts: (Buffer | string)[]) =>
    createHmac('sha256', key)
      .update(Buffer.concat(parts.map((part) => Buffer.from(part as Buffer))))
      .digest()
  const shared = hmac(Buffer.from(keys.auth, 'base64url'), curve.computeSecret(sender))
  const info = [Buffer.from('WebPush: info\0'), Buffer.from(keys.p256dh, 'base64url'), sender, Buffer.from([1])]
  const secret = hmac(salt, hmac(shared, ...info))
  const key = hmac(secret, 'Content-Encoding: aes128gcm\0\u0001').subarray(0, 16)
  const nonce = hmac(secret, 'Content-Encoding: nonce\0\u0001').subarray(0, 12)
  const record = body.subarray(21 + idLength)
  const decipher = createDecipheriv('aes-128-gcm', key, nonce)
  decipher.setAuthTag(record.subarray(-16))
  const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()])
  return padded.subarray(0, padded.lastIndexOf(2)).toString('utf8')
}
