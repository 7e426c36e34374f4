/**
 * A cache inside the process that the log keeps honest. What makes an entry go, failures first:
 *
 *   the place in the log is lost   everything goes, and nothing is kept until the instance stands at the head again
 *   an invalidation in the log     the keys it names go, in every instance; a load that is under way for one of them was
 *                                  begun too early: whoever waits gets what it gives, and it is not kept
 *   its time is over, or there is no room: the one that was not asked for longest goes first
 *
 * Before `start()`, and wherever nothing reads the log, it keeps nothing: there would be nobody to say that an entry is
 * old. Loads of one key at a time are one load.
 */
import { AftercommitError } from '../errors.ts'
import { type Clock, type Duration, type Registry, toMs, withTimeout } from '../runtime/index.ts'
import { compileGlob, type KeyChoice, toKeyChoice } from './glob.ts'
import type { Invalidation } from './invalidation.ts'
import { createCacheMetrics } from './metrics.ts'

export type CacheLoad<Value = unknown> = (
  key: string,
  context: { readonly signal: AbortSignal },
) => Value | Promise<Value>

export interface CacheEntryOptions {
  /** How long it may be kept; that of the instance unless told. */
  readonly ttl?: Duration | undefined
}

export interface Cache {
  /**
   * What is kept under a key. What is not there is loaded, by `load` or else by the loader whose pattern fits, and kept;
   * many who ask at once cause one load. Undefined when there is no loader either. What you get is shared: do not
   * change it.
   */
  get<Value = unknown>(key: string, load?: CacheLoad<Value>, options?: CacheEntryOptions): Promise<Value | undefined>
  /** Keeps a value in this process. */
  set(key: string, value: unknown, options?: CacheEntryOptions): void
  /** Lets a key go, or all that a pattern such as `product:*` fits, in this process only; a `cache` action does it in all. */
  delete(keyOrPattern: string): number
  /** Loads the keys that a pattern fits; the first that fits counts. A `cache` action that refreshes uses it too. */
  loader(pattern: string, load: CacheLoad, options?: CacheEntryOptions): void
  readonly size: number
}

export interface CacheOptions {
  /** 10,000 unless told. */
  readonly maxEntries?: number | undefined
  /** 5 min unless told. */
  readonly ttl?: Duration | undefined
  /** For one load; 30 s unless told. */
  readonly loadTimeout?: Duration | undefined
}

export interface Loader {
  readonly load: CacheLoad
  readonly ttlMs: number | undefined
}

export interface CacheInside extends Cache {
  /** Whether the log is followed, so that entries may be kept; everything goes when it is not. */
  follow(isFollowing: boolean): void
  apply(invalidation: Invalidation): void
  clear(): void
  loaderOf(key: string): Loader | undefined
  readonly hasLoaders: boolean
}

interface Flight {
  readonly result: Promise<unknown>
  isTooOld: boolean
}

export interface CacheParts {
  readonly clock: Clock
  readonly metrics: Registry
  /** Somebody keeps something for the first time: from now on invalidations must be heard. */
  readonly onFirstUse: () => void
}

/** About a third of a second. An invalidation that would take longer lets go of everything, which is always right. */
const MOST_STEPS = 100_000_000

export function createCache(options: CacheOptions, parts: CacheParts): CacheInside {
  const { clock } = parts
  const { maxEntries = 10_000 } = options
  if (!Number.isSafeInteger(maxEntries) || maxEntries < 1) {
    throw new AftercommitError('BAD_OPTION', 'cache.maxEntries must be a whole number from 1 up.')
  }
  const ttlMs = toMs(options.ttl ?? '5m', 'cache.ttl')
  const loadTimeoutMs = toMs(options.loadTimeout ?? '30s', 'cache.loadTimeout')
  /** In the order in which they were last asked for. */
  const entries = new Map<string, { readonly value: unknown; readonly until: number }>()
  const flights = new Map<string, Flight>()
  const loaders: (Loader & { readonly fits: (key: string) => boolean })[] = []
  const metrics = createCacheMetrics(parts.metrics, () => entries.size)
  let isFollowed = false
  let isUsed = false

  function use(): void {
    if (isUsed) return
    isUsed = true
    parts.onFirstUse()
  }

  /** Undefined when there is none: a value that is kept is never undefined. */
  function find(key: string): unknown {
    const entry = entries.get(key)
    if (entry === undefined) return undefined
    entries.delete(key)
    if (entry.until <= clock.monotonic()) return undefined
    entries.set(key, entry)
    return entry.value
  }

  function keep(key: string, value: unknown, forMs: number): void {
    entries.delete(key)
    if (value === undefined || !isFollowed) return
    entries.set(key, { value, until: clock.monotonic() + forMs })
    if (entries.size <= maxEntries) return
    entries.delete(entries.keys().next().value!)
    metrics.evictions.inc()
  }

  function fly(key: string, { load, ttlMs: ownMs = ttlMs }: Loader): Promise<unknown> {
    const ending = new AbortController()
    const loading = (async () => load(key, { signal: ending.signal }))()
    const result = withTimeout(loading, loadTimeoutMs, clock, `A load of the cache had not ended`)
    const flight: Flight = { result, isTooOld: !isFollowed }
    flights.set(key, flight)
    const land = () => flights.get(key) === flight && flights.delete(key)
    result.then(
      (value) => {
        land()
        if (!flight.isTooOld) keep(key, value, ownMs)
      },
      (error) => {
        land()
        ending.abort(error)
      },
    )
    return result
  }

  function remove(choice: KeyChoice): string[] {
    if ('key' in choice) {
      const { key } = choice
      return forget(key) ? [key] : []
    }
    const fits = compileGlob(choice.pattern)
    return [...new Set([...entries.keys(), ...flights.keys()])].filter((key) => fits(key) && forget(key))
  }

  /** What matching takes at most: each pattern the product of its length and that of each key. */
  function stepsOf(patterns: readonly string[]): number {
    if (patterns.length === 0) return 0
    let characters = 0
    for (const known of [entries, flights]) for (const key of known.keys()) characters += key.length
    return characters * patterns.reduce((sum, pattern) => sum + pattern.length, 0)
  }

  function forget(key: string): boolean {
    const flight = flights.get(key)
    if (flight) flight.isTooOld = true
    flights.delete(key)
    return entries.delete(key) || flight !== undefined
  }

  const cache: CacheInside = {
    async get<Value>(key: string, load?: CacheLoad<Value>, { ttl }: CacheEntryOptions = {}) {
      use()
      const found = find(key)
      if (found !== undefined) {
        metrics.hits.inc()
        return found as Value
      }
      metrics.misses.inc()
      const flight = flights.get(key)
      if (flight) return flight.result as Promise<Value>
      const loader = load ? { load, ttlMs: ttl === undefined ? undefined : toMs(ttl, 'ttl') } : cache.loaderOf(key)
      return loader && (fly(key, loader) as Promise<Value>)
    },
    set(key, value, { ttl } = {}) {
      use()
      // A load that is under way has begun before this.
      forget(key)
      keep(key, value, ttl === undefined ? ttlMs : toMs(ttl, 'ttl'))
    },
    delete: (keyOrPattern) => remove(toKeyChoice(keyOrPattern)).length,
    loader(pattern, load, { ttl } = {}) {
      const ownMs = ttl === undefined ? undefined : toMs(ttl, 'ttl')
      loaders.push({ load, ttlMs: ownMs, fits: compileGlob(pattern) })
    },
    get size() {
      return entries.size
    },
    follow(isFollowing) {
      isFollowed = isFollowing
      if (!isFollowing) cache.clear()
    },
    apply({ keys, patterns, action }) {
      if (stepsOf(patterns) > MOST_STEPS) {
        metrics.invalidated.inc(entries.size)
        cache.clear()
        return
      }
      const choices = [...keys.map((key) => ({ key })), ...patterns.map((pattern) => ({ pattern }))]
      const removed = choices.flatMap(remove)
      metrics.invalidated.inc(removed.length)
      if (action === 'invalidate') return
      for (const key of removed) {
        const loader = cache.loaderOf(key)
        // Whoever asks next joins it, or tries again and hears what went wrong.
        if (loader && !flights.has(key)) fly(key, loader).catch(() => {})
      }
    },
    clear() {
      for (const flight of flights.values()) flight.isTooOld = true
      flights.clear()
      entries.clear()
    },
    loaderOf: (key) => loaders.find(({ fits }) => fits(key)),
    get hasLoaders() {
      return loaders.length > 0
    },
  }
  return cache
}
