/** The shared cache on a real Redis: what goes, what stays, and loads that were begun too early. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { redisCacheStore } from '../../src/adapters/redis/index.ts'
import type { CacheLoad, CacheStore, KeyChoice } from '../../src/cache/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { hasRedis, type PlainClient, type RedisServer, startRedis } from '../support/redis.ts'

const never = () => new AbortController().signal

async function open(): Promise<{ redis: RedisServer; client: PlainClient; another(): CacheStore; store: CacheStore }> {
  const redis = await startRedis()
  const another = () => {
    const store = redisCacheStore({ url: redis.url, poolSize: 3, schema: 'shop' })
    onTestFinished(() => store.close())
    return store
  }
  return { redis, client: await redis.client(), another, store: another() }
}

const refresh = (store: CacheStore, key: string, position: bigint, load: CacheLoad, timeoutMs = 60_000) =>
  store.refresh({ key, position, load, ttlMs: undefined, timeoutMs, signal: never() })

const invalidate = (store: CacheStore, position: bigint, ...choices: KeyChoice[]) =>
  store.invalidate(choices, position, never())

describe.runIf(hasRedis())('invalidating', () => {
  it('removes keys and what patterns fit, counts them, and leaves all others', async () => {
    const { client, store } = await open()
    await client.mSet(['p:1', 'a', 'p:2', 'a', 'p:*', 'a', 'q:1', 'a', 'list:7:x', 'a', 'list:8:x', 'a'])
    expect(await invalidate(store, 1n, { key: 'p:1' }, { key: 'gone' }, { pattern: 'list:7:*' })).toBe(2)
    expect(await invalidate(store, 2n, { key: 'p:*' })).toBe(1)
    expect((await client.keys('*')).sort()).toEqual(['list:8:x', 'p:2', 'q:1'])
  })

  it('removes ten thousand keys by pattern without KEYS', async () => {
    const { client, store } = await open()
    const keys = Array.from({ length: 10_000 }, (_, at) => [`page:${at}`, 'x'] as [string, string])
    await client.mSet([...keys, ['other', 'x']])
    await client.configResetStat()
    expect(await invalidate(store, 1n, { pattern: 'page:*' })).toBe(10_000)
    expect(await client.dbSize()).toBe(1)
    const used = await client.info('commandstats')
    expect(used).toContain('cmdstat_scan:')
    expect(used).not.toContain('cmdstat_keys:')
    expect(used).not.toContain('cmdstat_del:')
  })

  it('of everything leaves the notes of its own', async () => {
    const { client, store } = await open()
    await refresh(store, 'a', 1n, () => 1)
    expect(await invalidate(store, 2n, { pattern: '*' })).toBe(1)
    expect(await client.keys('*')).toEqual(['aftercommit:shop:cache:loaded:a'])
  })

  it('fails while Redis is away, and works when it is back', async () => {
    const { redis, store } = await open()
    await invalidate(store, 1n, { key: 'a' })
    await redis.kill()
    await expect(invalidate(store, 2n, { key: 'a' })).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    await redis.start()
    expect(await eventually(async () => (await invalidate(store, 3n, { key: 'a' })) === 0)).toBe(true)
  })
})

describe.runIf(hasRedis())('refreshing', () => {
  it('keeps what was loaded as JSON, for as long as it was told, and removes the key when there is nothing', async () => {
    const { client, store } = await open()
    await refresh(store, 'a', 1n, () => ({ price: 9 }))
    await store.refresh({
      key: 'b',
      position: 1n,
      load: () => 'text',
      ttlMs: 60_000,
      timeoutMs: 60_000,
      signal: never(),
    })
    expect([await client.get('a'), await client.get('b')]).toEqual(['{"price":9}', '"text"'])
    expect([await client.ttl('a'), (await client.ttl('b')) > 0]).toEqual([-1, true])
    await refresh(store, 'a', 2n, () => undefined)
    expect(await client.exists('a')).toBe(0)
  })

  it('loads a key in one process at a time, and a load that began later does for all who waited', async () => {
    const { another, client } = await open()
    const { passed, open: end } = gate()
    let running = 0
    let most = 0
    let loads = 0
    const load = async () => {
      loads++
      most = Math.max(most, ++running)
      await passed
      running--
      return loads
    }
    const first = refresh(another(), 'a', 1n, load)
    await eventually(() => loads === 1)
    const others = Array.from({ length: 19 }, (_, at) => refresh(another(), 'a', BigInt(at + 2), load))
    await eventually(async () => (await client.hGet('aftercommit:shop:cache:load:a', 'position'))?.endsWith('20'))
    end()
    const done = await Promise.all([first, ...others])
    expect(most).toBe(1)
    // One that was under way when the others came, and one for them.
    expect(loads).toBe(2)
    expect(done.filter((where) => where === 'here')).toHaveLength(1)
    expect(await client.get('a')).toBe('2')
  })

  it.each([
    ['the key', { key: 'a:1' }],
    ['a pattern', { pattern: 'a:*' }],
  ])('does not keep what was loaded before a later invalidation of %s', async (_, choice) => {
    const { store, another, client } = await open()
    const { passed, open: end } = gate()
    let value = 'old'
    let loads = 0
    const refreshing = refresh(store, 'a:1', 1n, async () => {
      const seen = value
      if (++loads === 1) await passed
      return seen
    })
    await eventually(() => loads === 1)
    value = 'new'
    await invalidate(another(), 2n, choice)
    expect(await client.exists('a:1')).toBe(0)
    end()
    await refreshing
    expect([await client.get('a:1'), loads]).toEqual(['"new"', 2])
  })

  it('does not let the late result of a load that was given up overwrite a newer one', async () => {
    const { store, another, client } = await open()
    const { passed, open: end } = gate()
    const slow = refresh(store, 'a', 1n, () => passed.then(() => 'late'))
    await eventually(async () => (await client.exists('aftercommit:shop:cache:load:a')) === 1)
    // As if its time had passed while the process stood still.
    await client.del('aftercommit:shop:cache:load:a')
    expect(await refresh(another(), 'a', 2n, () => 'newer')).toBe('here')
    end()
    expect(await slow).toBe('elsewhere')
    expect(await client.get('a')).toBe('"newer"')
  })

  it('is free for others when the load fails, and tries again when asked to', async () => {
    const { store, client } = await open()
    await expect(refresh(store, 'a', 1n, () => Promise.reject(new Error('no rows')))).rejects.toThrow('no rows')
    expect(await client.exists('aftercommit:shop:cache:load:a')).toBe(0)
    expect(await refresh(store, 'a', 1n, () => 1)).toBe('here')
    expect(await refresh(store, 'a', 1n, () => 2)).toBe('elsewhere')
  })

  it('gives up a load that takes too long, and waiting for one of another process', async () => {
    const { store, another } = await open()
    const { passed, open: end } = gate()
    const { passed: begun, open: begin } = gate()
    const held = refresh(store, 'a', 1n, () => {
      begin()
      return passed
    })
    await begun
    const waiting = refresh(another(), 'a', 2n, () => 1, 200)
    await expect(waiting).rejects.toMatchObject({ code: 'TIMED_OUT' })
    end()
    await held
    await expect(refresh(store, 'b', 1n, () => new Promise(() => {}), 50)).rejects.toMatchObject({ code: 'TIMED_OUT' })
  })
})
