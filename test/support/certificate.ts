/**
 * A self-signed certificate for a server on loopback, made with Node alone: the key of an elliptic curve and the few
 * fields of X.509 that TLS looks at, written in DER.
 */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

export interface Certificate {
  /** Both as PEM. */
  readonly key: string
  readonly cert: string
}

/** Names as in subjectAltName: `{ ip: '127.0.0.1' }`, `{ dns: 'localhost' }`. Valid from yesterday until tomorrow. */
export function selfSigned(...names: ({ ip: string } | { dns: string })[]): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = sequence(set(sequence(oid(COMMON_NAME), utf8('aftercommit test'))))
  const day = 86_400_000
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    sequence(oid(ECDSA_WITH_SHA256)),
    issuer,
    sequence(time(Date.now() - day), time(Date.now() + day)),
    issuer,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(
      3,
      sequence(
        extension(BASIC_CONSTRAINTS, sequence(TRUE)),
        extension(SUBJECT_ALT_NAME, sequence(...names.map(toName))),
      ),
    ),
  )
  const signature = sign('sha256', body, privateKey)
  const der = sequence(body, sequence(oid(ECDSA_WITH_SHA256)), bits(signature))
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, cert: pem(der) }
}

const COMMON_NAME = '550403'
const SUBJECT_ALT_NAME = '551d11'
const BASIC_CONSTRAINTS = '551d13'
const ECDSA_WITH_SHA256 = '2a8648ce3d040302'
const TRUE = Buffer.from([1, 1, 0xff])

function toName(name: { ip: string } | { dns: string }): Buffer {
  if ('dns' in name) return der(0x82, Buffer.from(name.dns, 'ascii'))
  return der(0x87, Buffer.from(name.ip.split('.').map(Number)))
}

const extension = (id: string, value: Buffer) => sequence(oid(id), der(4, value))
const sequence = (...parts: Buffer[]) => der(0x30, ...parts)
const set = (...parts: Buffer[]) => der(0x31, ...parts)
const tagged = (number: number, ...parts: Buffer[]) => der(0xa0 + number, ...parts)
const oid = (hex: string) => der(6, Buffer.from(hex, 'hex'))
const utf8 = (text: string) => der(12, Buffer.from(text, 'utf8'))
/** The first byte must be below 128: a higher one would make the number negative. */
const integer = (bytes: Buffer) => der(2, bytes)
const bits = (bytes: Buffer) => der(3, Buffer.from([0]), bytes)
const time = (ms: number) =>
  der(
    0x17,
    Buffer.from(
      `${new Date(ms)
        .toISOString()
        .replace(/[-:T]|\.\d+/g, '')
        .slice(2)}`,
    ),
  )

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(/.{1,64}/g)!
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
