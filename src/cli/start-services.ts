/** What the file asks of the process beside its observers: word through Redis, and the audit. */
import type { Aftercommit } from '../index.ts'
import type { CheckedConfiguration } from '../observers/index.ts'

export async function addServices(ac: Aftercommit, { redis, audit }: CheckedConfiguration): Promise<void> {
  if (redis?.enabled) {
    const [{ redisRelay }, { reveal }] = await Promise.all([
      import('../adapters/redis/index.ts'),
      import('../configuration/index.ts'),
    ])
    const { url, channel, poolSize, timeoutMs } = redis
    ac.hooks.connect(redisRelay({ url: reveal(url), channel, poolSize, timeout: `${timeoutMs}ms` }))
  }
  if (audit.enabled) {
    const { auditHook } = await import('../index.ts')
    ac.hooks.add(auditHook())
  }
}
