import { expect, it, onTestFinished } from 'vitest'
import { redisCacheStore, redisRelay } from '../../src/adapters/redis/index.ts'
import { eventually } from '../support/eventually.ts'
import { hasRedis, startRedis } from '../support/redis.ts'
import { event, fakeHost } from './support.ts'

it.runIf(hasRedis())('works with the rights that the guides name, and no others', async () => {
  const redis = await startRedis()
  const client = await redis.client()
  const rights =
    'resetchannels &aftercommit:* ~aftercommit:* +@connection +subscribe +publish +eval +get +getrange +set'
  await client.sendCommand(['ACL', 'SETUSER', 'shop', 'on', '>secret', ...rights.split(' ')])
  const cacheRights = '~product:* +unlink +scan +hget +hset +pexpire'
  await client.sendCommand(['ACL', 'SETUSER', 'shop', ...cacheRights.split(' ')])
  const url = redis.url.replace('redis://', 'redis://shop:secret@')
  const [a, b] = ['a', 'b'].map((process) => ({ relay: redisRelay({ url }), host: fakeHost(process) }))
  for (const { relay, host } of [a!, b!]) {
    await relay.start(host)
    onTestFinished(() => relay.stop())
  }
  const nudges = b!.host.nudges
  await a!.host.publisher!.publish([event(1)])
  await eventually(() => b!.host.nudges > nudges)
  const store = redisCacheStore({ url, schema: 'shop' })
  onTestFinished(() => store.close())
  const { signal } = new AbortController()
  const refresh = { key: 'product:1', position: 1n, load: () => 1, ttlMs: 60_000, timeoutMs: 20_000, signal }
  expect(await store.refresh(refresh)).toBe('here')
  expect(await store.invalidate([{ key: 'product:1' }, { pattern: 'product:*' }], 2n, signal)).toBe(1)
  await expect(store.invalidate([{ key: 'other' }], 3n, signal)).rejects.toMatchObject({ reason: 'NOPERM' })
})
