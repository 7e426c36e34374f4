import type { CacheStore } from '../../cache/index.ts'
import { type RedisSettings, reveal } from '../../configuration/index.ts'
import type { Clock } from '../../runtime/index.ts'
import type { SharedCache } from '../action.ts'

/** The Redis of `[redis]`. Its client is loaded with the first call, and what is wrong with it shows there. */
export function openSharedCache(redis: RedisSettings, schema: string, clock: Clock): SharedCache {
  let opening: Promise<CacheStore> | undefined
  let isClosed = false
  const open = async () => {
    const { redisCacheStore } = await import('../../adapters/redis/index.ts')
    const { poolSize, timeoutMs } = redis
    const store = redisCacheStore({ url: reveal(redis.url), timeout: `${timeoutMs}ms`, poolSize, schema, clock })
    if (isClosed) store.close()
    return store
  }
  const store = () => {
    opening ??= open()
    return opening
  }
  return {
    origin: originOf(reveal(redis.url)),
    store: {
      invalidate: async (...words) => (await store()).invalidate(...words),
      refresh: async (words) => (await store()).refresh(words),
      ping: async () => (await store()).ping(),
      close() {
        isClosed = true
        opening?.then((opened) => opened.close()).catch(() => {})
      },
    },
  }
}

/** Without user and password. */
function originOf(url: string): string {
  if (!URL.canParse(url)) return 'redis'
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
