import { describe, expect, it } from 'vitest'
import { createCache } from '../../src/cache/cache.ts'
import { type CacheOptions, readInvalidation } from '../../src/cache/index.ts'
import { createRegistry, createTestClock } from '../../src/runtime/index.ts'
import { gate } from '../subscriptions/support/open-subscriptions.ts'

function open(options: CacheOptions = {}) {
  const clock = createTestClock()
  const metrics = createRegistry()
  let uses = 0
  const cache = createCache(options, { clock, metrics, onFirstUse: () => void uses++ })
  cache.follow(true)
  return { cache, clock, metrics, uses: () => uses }
}

/** A loader that counts, and waits where it is told to. */
function counting(values: () => unknown = () => 'value') {
  const loads: string[] = []
  return {
    loads,
    load: async (key: string) => {
      loads.push(key)
      return values()
    },
  }
}

const invalidate = (...keys: string[]) => ({ action: 'invalidate', keys, patterns: [] }) as const

describe('the cache inside a process', () => {
  it('lets go of everything where patterns would take long to match', async () => {
    const { cache } = open()
    for (let n = 0; n < 5_000; n++) cache.set(`${'a'.repeat(50)}${n}`, n)
    const pattern = `${'*a'.repeat(500)}*b`
    cache.apply({ action: 'invalidate', keys: [], patterns: Array.from({ length: 244 }, () => pattern) })
    expect(await cache.get(`${'a'.repeat(50)}1`)).toBeUndefined()
    cache.set('a:1', 1)
    cache.set('b:1', 1)
    cache.apply({ action: 'invalidate', keys: [], patterns: ['a:*', '?:2'] })
    expect([await cache.get('a:1'), await cache.get('b:1')]).toEqual([undefined, 1])
  })

  it('loads what it does not have, once for all who ask, and keeps it', async () => {
    const { cache, uses } = open()
    const { load, loads } = counting(() => ({ price: 9 }))
    const [one, two] = await Promise.all([cache.get('p:1', load), cache.get('p:1', load)])
    expect(one).toBe(two)
    expect(await cache.get('p:1')).toBe(one)
    expect([loads, uses()]).toEqual([['p:1'], 1])
  })

  it('uses the first loader whose pattern fits, and gives undefined without one', async () => {
    const { cache } = open()
    cache.loader('p:*', (key) => `first ${key}`)
    cache.loader('*', (key) => `second ${key}`)
    expect(await cache.get('p:1')).toBe('first p:1')
    expect(await cache.get('q:1')).toBe('second q:1')
    expect(await open().cache.get('p:1')).toBeUndefined()
  })

  it('does not keep what a load gives that began before an invalidation', async () => {
    const { cache } = open()
    const { passed, open: end } = gate()
    const old = cache.get('p:1', async () => {
      await passed
      return 'old'
    })
    cache.apply(invalidate('p:1'))
    const fresh = cache.get('p:1', () => 'fresh')
    end()
    expect([await old, await fresh]).toEqual(['old', 'fresh'])
    expect(await cache.get('p:1')).toBe('fresh')
  })

  it('lets go by pattern what is kept and what is being loaded', async () => {
    const { cache } = open()
    for (const key of ['p:1', 'p:2', 'q:1']) cache.set(key, key)
    const { passed, open: end } = gate()
    const loading = cache.get('p:3', () => passed)
    expect(cache.delete('p:*')).toBe(3)
    end()
    await loading
    expect([cache.size, await cache.get('q:1')]).toEqual([1, 'q:1'])
  })

  it('lets the one go that was not asked for longest, and everything when its time is over', async () => {
    const { cache, clock } = open({ maxEntries: 2, ttl: '1m' })
    cache.set('a', 1)
    cache.set('b', 2, { ttl: '2m' })
    await cache.get('a')
    cache.set('c', 3)
    expect([await cache.get('a'), await cache.get('b'), await cache.get('c')]).toEqual([1, undefined, 3])
    cache.set('b', 2, { ttl: '2m' })
    await clock.advance(60_000)
    expect([await cache.get('c'), await cache.get('b')]).toEqual([undefined, 2])
  })

  it('keeps nothing while nobody would tell it that something is old', async () => {
    const { cache } = open()
    const { load, loads } = counting()
    await cache.get('a', load)
    const { passed, open: end } = gate()
    const loading = cache.get('b', () => passed)
    cache.follow(false)
    cache.set('c', 1)
    await cache.get('a', load)
    cache.follow(true)
    end()
    await loading
    expect([cache.size, loads]).toEqual([0, ['a', 'a']])
  })

  it('keeps neither a failure nor nothing, and everybody who waits hears of it', async () => {
    const { cache } = open()
    const failing = () => Promise.reject(new Error('no'))
    const [one, two] = await Promise.allSettled([cache.get('a', failing), cache.get('a', failing)])
    expect([one.status, two.status]).toEqual(['rejected', 'rejected'])
    expect(await cache.get('a', () => undefined)).toBeUndefined()
    expect(cache.size).toBe(0)
    // Nothing is a value, and may be kept.
    await cache.get('a', () => null)
    expect(await cache.get('a', () => 'other')).toBeNull()
  })

  it('refreshes what it has, and does not load what nobody asked for', async () => {
    const { cache } = open()
    let version = 1
    const { load, loads } = counting(() => version)
    cache.loader('*', load)
    expect(await cache.get('a')).toBe(1)
    version = 2
    cache.apply({ action: 'refresh', keys: ['a', 'b'], patterns: [] })
    expect(await cache.get('a')).toBe(2)
    expect(loads).toEqual(['a', 'a'])
  })

  it('counts hits, misses, evictions and invalidations', async () => {
    const { cache, metrics } = open({ maxEntries: 1 })
    cache.set('a', 1)
    cache.set('b', 1)
    await cache.get('a')
    await cache.get('b')
    cache.apply(invalidate('b'))
    const text = await metrics.text()
    for (const line of ['lookups_total{outcome="hit"} 1', 'lookups_total{outcome="miss"} 1'])
      expect(text).toContain(`aftercommit_cache_${line}`)
    for (const line of ['removals_total{reason="room"} 1', 'removals_total{reason="invalidated"} 1', 'entries 0'])
      expect(text).toContain(`aftercommit_cache_${line}`)
  })

  it('takes keys like __proto__ for keys', async () => {
    const { cache } = open()
    cache.set('__proto__', 1)
    expect([await cache.get('__proto__'), await cache.get('constructor')]).toEqual([1, undefined])
  })

  it('ends a load that takes too long', async () => {
    const { cache, clock } = open({ loadTimeout: '1s' })
    let signal: AbortSignal | undefined
    const loading = cache.get('a', (_, context) => {
      signal = context.signal
      return new Promise(() => {})
    })
    loading.catch(() => {})
    await clock.advance(1_000)
    await expect(loading).rejects.toMatchObject({ code: 'TIMED_OUT' })
    expect(signal?.aborted).toBe(true)
  })
})

describe('an invalidation that somebody else wrote', () => {
  it('invalidates everything when it cannot be understood', () => {
    for (const payload of [null, 'text', {}, { keys: ['a'] }, { keys: [1], patterns: [] }])
      expect(readInvalidation({ payload })).toEqual({ action: 'invalidate', keys: [], patterns: ['*'] })
  })
})
