/**
 * Redis between instances, and Redis as a cache. Events stay in Postgres: what goes through Redis is word of them, and
 * whatever Redis loses is in the log. Everything here works without Redis for a while, says so, and goes on when it is
 * back. The client is an optional peer, loaded with the first connection.
 *
 * Start with relay.ts, then message.ts and chain.ts, which decide and touch nothing; listener.ts is for processes without
 * a database, cache-store.ts for `type = "cache"`.
 */
export { type RedisCacheStoreOptions, redisCacheStore } from './cache-store.ts'
export type { Gap } from './chain.ts'
export { type RedisListener, type RedisListenerOptions, redisListener } from './listener.ts'
export type { RedisEvent } from './message.ts'
export { redisRelay } from './relay.ts'
export type { RedisOptions, RedisRelayOptions } from './relay-options.ts'
