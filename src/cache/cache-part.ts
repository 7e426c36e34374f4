/** `ac.cache`, and what others need of it: the hook that keeps it honest, and the word that actions send through the log. */
import type { HookOptions } from '../hooks/index.ts'
import type { Clock, Registry } from '../runtime/index.ts'
import { type Cache, type CacheOptions, createCache, type Loader } from './cache.ts'
import { CACHE_EVENT, type Invalidation, readInvalidation } from './invalidation.ts'

/** What cache actions use. */
export interface CacheActions {
  loaderOf(key: string): Loader | undefined
  readonly hasLoaders: boolean
  /** Tells the caches inside all processes; saying it again under the same id says it once. */
  announce(id: string, invalidation: Invalidation): Promise<unknown>
}

export interface CachePartOptions {
  readonly options: CacheOptions
  readonly clock: Clock
  readonly metrics: Registry
  readonly addHook: (hook: HookOptions) => void
  readonly append: (type: string, event: { id: string; payload: unknown }) => Promise<unknown>
}

export function createCachePart({ options, clock, metrics, addHook, append }: CachePartOptions): {
  readonly cache: Cache
  readonly actions: CacheActions
} {
  const cache = createCache(options, { clock, metrics, onFirstUse: () => addHook(hook) })
  const hook: HookOptions = {
    name: 'aftercommit:cache',
    types: [CACHE_EVENT],
    scope: 'instance',
    key: () => 'cache',
    handle: (event) => cache.apply(readInvalidation(event)),
    // Also when the place in the log was lost: what was missed may have been about anything.
    onStart: () => cache.clear(),
    onReady: (isReady) => cache.follow(isReady),
  }
  return {
    cache,
    actions: {
      loaderOf: cache.loaderOf,
      get hasLoaders() {
        return cache.hasLoaders
      },
      announce: (id, payload) => append(CACHE_EVENT, { id, payload }),
    },
  }
}
