/**
 * Redis as the cache that all processes share. Keys are those of the user; what this file keeps for itself is under a
 * prefix that no invalidation touches:
 *
 *   …:load:<key>     somebody loads this key: a token of the loader, and the highest position of an event that wants it
 *                    fresh. An invalidation raises the position; a pattern, which cannot know all keys, removes it. A
 *                    loader whose token is gone or whose position was raised has loaded too early and loads again
 *   …:loaded:<key>   the position up to which a load is known to be fresh, for a minute: the thousand refreshes of a key
 *                    that came meanwhile are done by the one load that began after them
 *
 * Positions are written with 19 digits, so that Lua, whose numbers are too small for them, can compare them as text.
 */
import { randomUUID } from 'node:crypto'
import type { CacheStore, KeyChoice, StoreRefresh } from '../../cache/index.ts'
import { AftercommitError } from '../../errors.ts'
import { stringifyJson } from '../../events/index.ts'
import { type Clock, systemClock, withTimeout } from '../../runtime/index.ts'
import { createPool } from './pool.ts'
import { type RedisOptions, toRedisSettings } from './relay-options.ts'
import { BEGIN, END, INVALIDATE, STORE } from './scripts.ts'

export interface RedisCacheStoreOptions extends RedisOptions {
  /** Tells the notes of several applications apart; the schema of the log. */
  readonly schema: string
  readonly clock?: Clock | undefined
}

const KEYS_AT_ONCE = 500
const SCAN_COUNT = 1_000
const WAIT_MS = 50
/** Beyond the time for a load, until it counts as dead. */
const GRACE_MS = 5_000
const LOADED_MS = 60_000

export function redisCacheStore(options: RedisCacheStoreOptions): CacheStore {
  const { clock = systemClock, schema } = options
  const pool = createPool({ ...toRedisSettings(options, 'A Redis cache'), clock })
  const notes = `aftercommit:${schema}:cache:`
  const loadNote = (key: string) => `${notes}load:${key}`
  const loadedNote = (key: string) => `${notes}loaded:${key}`

  const run = (script: string, keys: string[], words: string[]) =>
    pool.call((client) => client.eval(script, { keys, arguments: words }))

  async function invalidateKeys(keys: readonly string[], position: bigint, signal: AbortSignal): Promise<number> {
    let removed = 0
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
      signal.throwIfAborted()
      const some = keys.slice(at, at + KEYS_AT_ONCE)
      const answer = await run(INVALIDATE, [...some, ...some.map(loadNote)], [toDigits(position)])
      removed += Number(answer)
    }
    return removed
  }

  /** Loads first: one that ends before it is found here has stored its value before the keys are looked at. */
  async function invalidatePattern(pattern: string, signal: AbortSignal): Promise<number> {
    await unlinkMatching(escapeGlob(loadNote('')) + pattern, signal, () => true)
    return unlinkMatching(pattern, signal, (key) => !key.startsWith(notes))
  }

  /** Never KEYS, which stops the server for as long as it takes. */
  async function unlinkMatching(
    pattern: string,
    signal: AbortSignal,
    isWanted: (key: string) => boolean,
  ): Promise<number> {
    let [cursor, removed] = ['0', 0]
    do {
      signal.throwIfAborted()
      const page = await pool.call((client) => client.scan(cursor, { MATCH: pattern, COUNT: SCAN_COUNT }))
      const keys = page.keys.filter(isWanted)
      for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
        removed += await pool.call((client) => client.unlink(keys.slice(at, at + KEYS_AT_ONCE)))
      }
      cursor = page.cursor
    } while (cursor !== '0')
    return removed
  }

  async function refresh({
    key,
    position,
    load,
    ttlMs,
    timeoutMs,
    signal,
  }: StoreRefresh): Promise<'here' | 'elsewhere'> {
    const token = randomUUID()
    const leaseMs = String(timeoutMs + GRACE_MS)
    const deadline = clock.monotonic() + timeoutMs
    const begin = async () => {
      const wanted = [toDigits(position), token, leaseMs]
      return String(await run(BEGIN, [loadNote(key), loadedNote(key)], wanted))
    }
    for (let state = await begin(); ; state = await begin()) {
      if (state === 'done') return 'elsewhere'
      if (state === 'mine' && (await loadUntilFresh())) return 'here'
      if (clock.monotonic() >= deadline) throw stillLoading()
      await clock.sleep(WAIT_MS, signal)
    }

    /** False when the load was taken from us: it took too long, or a pattern went over the key. */
    async function loadUntilFresh(): Promise<boolean> {
      let fresh = toDigits(position)
      try {
        for (;;) {
          const value = toText(await loadOnce())
          const words = [token, fresh, leaseMs, String(LOADED_MS), ttlMs === undefined ? '' : String(Math.ceil(ttlMs))]
          const keys = [key, loadNote(key), loadedNote(key)]
          const answer = String(await run(STORE, keys, value === undefined ? words : [...words, value]))
          if (answer === 'stored') return true
          if (answer === 'lost') return false
          fresh = answer
        }
      } catch (error) {
        await run(END, [loadNote(key)], [token]).catch(() => {})
        throw error
      }
    }

    async function loadOnce(): Promise<unknown> {
      const late = new AbortController()
      const loading = (async () => load(key, { signal: AbortSignal.any([signal, late.signal]) }))()
      try {
        return await withTimeout(loading, timeoutMs, clock, 'A loader of the cache had not ended')
      } catch (error) {
        late.abort(error)
        throw error
      }
    }
  }

  return {
    async invalidate(choices, position, signal) {
      const keys = choices.flatMap((choice) => ('key' in choice ? [choice.key] : []))
      let removed = await invalidateKeys(keys, position, signal)
      for (const pattern of patternsOf(choices)) removed += await invalidatePattern(pattern, signal)
      return removed
    },
    refresh,
    async ping() {
      await pool.call((client) => client.ping())
    },
    close: () => pool.close(),
  }
}

function patternsOf(choices: readonly KeyChoice[]): string[] {
  return choices.flatMap((choice) => ('pattern' in choice ? [choice.pattern] : []))
}

function toDigits(position: bigint): string {
  return String(position).padStart(19, '0')
}

/** Nothing to keep is no value: the key goes. */
function toText(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : stringifyJson(value, { name: 'value' })
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&')
}

function stillLoading(): AftercommitError {
  return new AftercommitError(
    'TIMED_OUT',
    'Another process was still loading the same key when the time for it was up. It is tried again.',
  )
}
