/**
 * How long to wait between tries. Pure: the caller brings the attempt, the policy and the dice.
 */
export interface Backoff {
  strategy: BackoffStrategy
  initialMs: number
  /** No delay is longer, jitter included. */
  maxMs: number
  /** Share of the delay by which it may be shorter or longer. */
  jitter?: number
  /** Delays listed one by one; they replace strategy and initialMs, and the last one repeats. */
  scheduleMs?: readonly number[]
}

export type BackoffStrategy = 'exponential' | 'linear' | 'fixed'

/** Milliseconds to wait after attempt number `attempt`, which counts from 1. */
export function backoffDelay(attempt: number, policy: Backoff, random: () => number = Math.random): number {
  const { maxMs, jitter = 0.25 } = policy
  const base = Math.min(plainDelay(attempt, policy), maxMs)
  // Drawn between the bounds rather than drawn and then cut: cutting would send half of all capped delays to exactly
  // maxMs, and everybody who failed together would come back together.
  const shortest = base * (1 - jitter)
  const longest = Math.min(base * (1 + jitter), maxMs)
  return Math.round(shortest + random() * (longest - shortest))
}

/**
 * After a lost connection: soon at first, every 5 to 10 s in the long run, for as long as it takes. The wide jitter
 * keeps a fleet from knocking all at once on a server that has just come back.
 */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  return backoffDelay(attempt, RECONNECT, random)
}

const RECONNECT: Backoff = { strategy: 'exponential', initialMs: 200, maxMs: 10_000, jitter: 0.5 }

/** A destination may ask for ten years; a day is enough. */
export const LONGEST_ASKED_MS = 24 * 60 * 60 * 1_000

// 2^52 times the shortest delay is beyond any maximum; a higher power would end in Infinity, and 0 * Infinity in NaN.
const HIGHEST_POWER = 52

function plainDelay(attempt: number, { strategy, initialMs, scheduleMs }: Backoff): number {
  const earlier = Math.max(0, attempt - 1)
  if (scheduleMs) return scheduleMs[Math.min(earlier, scheduleMs.length - 1)] ?? 0
  if (strategy === 'exponential') return initialMs * 2 ** Math.min(earlier, HIGHEST_POWER)
  if (strategy === 'linear') return initialMs * (earlier + 1)
  return initialMs
}
