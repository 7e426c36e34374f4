import type { RedisSettings } from '../../configuration/index.ts'
import { AftercommitError } from '../../errors.ts'
import { type Finding, ok } from '../../postgres/index.ts'
import type { Clock } from '../../runtime/index.ts'
import { openSharedCache } from './cache-shared.ts'

/** Whether the Redis of `[redis]` answers. Nothing is written. */
export async function diagnoseRedis(redis: RedisSettings, clock: Clock): Promise<Finding> {
  const { origin, store } = openSharedCache(redis, 'doctor', clock)
  try {
    await store.ping()
    return ok('redis', `${origin} answers`)
  } catch (error) {
    if (!(error instanceof AftercommitError)) throw error
    const [said = ''] = error.message.split('. ')
    return {
      level: 'problem',
      check: 'redis',
      message: `${origin}: ${said}, so instances are not ready and caches are not invalidated.`,
      fix: 'Look at url of [redis], or say enabled = false',
    }
  } finally {
    store.close()
  }
}
