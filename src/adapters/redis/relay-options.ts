import { AftercommitError } from '../../errors.ts'
import { checkAnswer, type Duration, toMs } from '../../runtime/index.ts'
import { checkAddress, checkChannel } from './address.ts'

export interface RedisOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` for TLS. Never shown. */
  readonly url: string
  /** For connecting, and for one call; 5 s unless told. */
  readonly timeout?: Duration | undefined
  /** Connections for calls, at most; 10 unless told. They are made when they are needed. */
  readonly poolSize?: number | undefined
}

export interface RedisRelayOptions extends RedisOptions {
  /** `aftercommit:<schema>:events` unless told. */
  readonly channel?: string | undefined
  /** False: nothing is connected. */
  readonly enabled?: boolean | (() => boolean) | undefined
}

export interface RedisSettings {
  readonly url: string
  readonly timeoutMs: number
  readonly poolSize: number
}

export interface RelaySettings extends RedisSettings {
  readonly channel: string | undefined
}

export function toRedisSettings({ url, timeout = '5s', poolSize = 10 }: RedisOptions, what: string): RedisSettings {
  const address = checkAddress(url, what)
  if (!Number.isSafeInteger(poolSize) || poolSize < 1 || poolSize > 1_000) {
    throw new AftercommitError('BAD_OPTION', `${what} needs a whole \`poolSize\` from 1 to 1000, so it was not made.`)
  }
  return { url: address, timeoutMs: Math.max(10, toMs(timeout, 'timeout')), poolSize }
}

export function toRelaySettings(options: RedisRelayOptions): RelaySettings {
  const { channel } = options
  if (channel !== undefined) checkChannel(channel, 'A Redis relay')
  return { ...toRedisSettings(options, 'A Redis relay'), channel }
}

export function isEnabled({ enabled = true }: RedisRelayOptions): boolean {
  if (typeof enabled !== 'function') return enabled
  return checkAnswer(enabled(), { what: '`enabled` of a Redis relay', so: 'nothing was connected' }) === true
}
