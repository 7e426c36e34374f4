import { describe, expect, test } from 'vitest'
import { isSecretName, maskSecrets } from '../../src/runtime/index.ts'

describe('maskSecrets', () => {
  test.each([
    ['postgres://app:hunter2@db:5432/shop', 'postgres://app:***@db:5432/shop'],
    ['could not reach "postgresql://app:hunter2@db/shop"', 'could not reach "postgresql://app:***@db/shop"'],
    ['postgres://app:hun@ter/2@db/shop', 'postgres://app:***@db/shop'],
    ['postgres://app:hun\'ter"2@db/shop', 'postgres://app:***@db/shop'],
    ['postgres://app:hunter2@h1,h2/shop?sslmode=require', 'postgres://app:***@h1,h2/shop?sslmode=require'],
    ['postgres://app@db/shop?password=hun@ter2&ssl=1', 'postgres://app@db/shop?password=***&ssl=1'],
    ['postgres://app:hunter2@db/x?password=hun@ter2', 'postgres://app:***@db/x?password=***'],
    ['postgres://app:pa&key=hunter2@db/shop', 'postgres://app:***@db/shop'],
    ['redis://:hunter2@cache:6379/0', 'redis://:***@cache:6379/0'],
    ['nats://hunter2@n1:4222', 'nats://***@n1:4222'],
    ['nats://a:hunter2@n1:4222,nats://b:hunter2@n2:4222', 'nats://a:***@n1:4222,nats://b:***@n2:4222'],
    ['https://hunter2@github.com/x', 'https://***@github.com/x'],
    ['https://u:hunter2@host/path?to=a@b.c', 'https://u:***@host/path?to=a@b.c'],
    ['https://u:hun/ter2@host/path', 'https://u:***@host/path'],
    ['{"a":"https://h1/","b":"https://u:hunter2@h2/"}', '{"a":"https://h1/","b":"https://u:***@h2/"}'],
    ['GET https://h/x?api_key=hunter2&page=2', 'GET https://h/x?api_key=***&page=2'],
    ['https://h/x?key=hunter2', 'https://h/x?key=***'],
    ['https://h/x?a=1&access_token=hunter2#top', 'https://h/x?a=1&access_token=***'],
    ["host=db user=app password='hunter2 x' dbname=shop", 'host=db user=app password=*** dbname=shop'],
    ['host=db password=hun,ter2 dbname=shop', 'host=db password=*** dbname=shop'],
    ["password='hunter2 and never closed", 'password=***'],
    ['{"user":"app","client_secret":"hun\\"ter2"}', '{"user":"app","client_secret":"***"}'],
    ['sent Authorization: Bearer hunter2', 'sent Authorization: ***'],
    ['sent bearer hunter2hunter2hunter2 to it', 'sent bearer *** to it'],
    ['Set-Cookie: sid=hunter2; Path=/\nnext line', 'Set-Cookie: ***\nnext line'],
  ])('%s becomes %s', (text, masked) => {
    expect(maskSecrets(text)).toBe(masked)
  })

  test.each([
    'password authentication failed for user "app"',
    'Basic authentication failed',
    'https://registry.test/@scope/package',
    'https://host:8080/a?mail=a@b.c',
    'http://[::1]:4400/x@y',
    'connect ECONNREFUSED 127.0.0.1:5432',
    'event order.placed of key=order/42 took 12 ms',
    'mail to someone@example.com',
    'postgres://app@db/shop',
    '',
  ])('%j says nothing secret and stays as it is', (text) => {
    expect(maskSecrets(text)).toBe(text)
  })

  test('masking twice changes nothing more', () => {
    const once = maskSecrets('postgres://app:hunter2@db/x?token=abc Authorization: Basic YTpi')
    expect(maskSecrets(once)).toBe(once)
  })

  // Quadratic work on 200,000 characters would take minutes and run into the time limit of the test.
  test.each(['a', 'a://', 'a://a:', '"a":"', "a='", '?a=', 'x=', '\\', ' ', '-', 'basic ', '"', '@'])(
    'a long run of %j is masked in linear time',
    (part) => {
      const text = part.repeat(Math.ceil(200_000 / part.length))
      expect(typeof maskSecrets(text)).toBe('string')
    },
  )
})

test.each([
  'password',
  'DB_PASSWORD',
  'dbPassword',
  'secret',
  'clientSecret',
  'token',
  'refresh_token',
  'authorization',
  'Cookie',
  'set-cookie',
  'user_id',
  'userId',
  'payload',
  'api-key',
  'privateKey',
])('%s is the name of a secret', (name) => {
  expect(isSecretName(name)).toBe(true)
})

test.each(['key', 'event_id', 'user', 'payload_bytes', 'position', 'term', 'subscription', '__proto__'])(
  '%s is not the name of a secret',
  (name) => {
    expect(isSecretName(name)).toBe(false)
  },
)
