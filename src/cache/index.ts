/**
 * Caches that follow the log: `ac.cache` inside each process, and the port to one that all processes share. The stage
 * promises that an invalidation reaches every process, and that a load which began before it does not bring the old value
 * back. It relies on hooks of scope `instance`, which hear everything from the moment they stand at the head.
 *
 * Start with cache.ts; invalidation.ts says why caches are told through the log. `type = "cache"` is in observers/.
 */
export type { Cache, CacheEntryOptions, CacheLoad, CacheOptions, Loader } from './cache.ts'
export { type CacheActions, createCachePart } from './cache-part.ts'
export { compileGlob, type KeyChoice, meansEverything, toKeyChoice } from './glob.ts'
export { CACHE_EVENT, type Invalidation, readInvalidation } from './invalidation.ts'
export type { CacheStore, StoreRefresh } from './store.ts'
