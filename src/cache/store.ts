/** The port to a cache that all processes share, such as Redis. Position: that of the event for which it is done. */
import type { CacheLoad } from './cache.ts'
import type { KeyChoice } from './glob.ts'

export interface CacheStore {
  /** Resolves with how many keys went. A load that began before does not put one of them back. */
  invalidate(choices: readonly KeyChoice[], position: bigint, signal: AbortSignal): Promise<number>
  /**
   * Loads a key and keeps what comes, wherever it is asked for: one load at a time in the whole cluster, and what was
   * loaded before a later invalidation is not kept. `'elsewhere'`: another process has loaded it since the event.
   */
  refresh(refresh: StoreRefresh): Promise<'here' | 'elsewhere'>
  /** Throws when it does not answer. */
  ping(): Promise<void>
  close(): void
}

export interface StoreRefresh {
  readonly key: string
  readonly position: bigint
  readonly load: CacheLoad
  /** Kept until it is invalidated unless told. */
  readonly ttlMs: number | undefined
  /** For the load, and for waiting until another process has ended its own. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}
