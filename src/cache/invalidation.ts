/**
 * How an invalidation reaches the caches inside all processes: as an event of the log. The action runs in one process,
 * and which others there are nobody knows; the log reaches each of them, those that were cut off included, and in the
 * same order as everything else. The other way, that each process judges events by the rules, would need the rules
 * everywhere, and could empty a cache that is filled again from a Redis that still has the old value.
 */
import type { AnyEvent } from '../log/index.ts'

export interface Invalidation {
  readonly action: 'invalidate' | 'refresh'
  readonly keys: readonly string[]
  readonly patterns: readonly string[]
}

/** Cache actions do not react to it: it is what they do. */
export const CACHE_EVENT = 'aftercommit.cache.invalidated'

/** Anybody may emit; what is not understood invalidates everything, for an entry too many is worse than one too few. */
export function readInvalidation({ payload }: Pick<AnyEvent, 'payload'>): Invalidation {
  const { action, keys, patterns } = (payload ?? {}) as Record<string, unknown>
  if (!isTexts(keys) || !isTexts(patterns)) return { action: 'invalidate', keys: [], patterns: ['*'] }
  return { action: action === 'refresh' ? 'refresh' : 'invalidate', keys, patterns }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
