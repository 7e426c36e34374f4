/** A relay as users write it, and what they hold of it. */
import { AftercommitError } from '../../errors.ts'
import type { AnyEvent, StartPoint } from '../../log/index.ts'
import type { Duration, RetryOptions } from '../../runtime/index.ts'
import type { SubscriptionHandle } from '../handle.ts'
import type { Sink } from './sink.ts'

export interface RelayOptions {
  /** Stable over releases: the checkpoint is kept under it. */
  readonly id: string
  readonly to: Sink
  /** Patterns of types; every event unless told. */
  readonly on?: readonly string[] | undefined
  readonly tenant?: string | undefined
  /** What order and parking go by, and the key of the messages; the aggregate unless told. */
  readonly key?: ((event: AnyEvent) => string) | undefined
  /** Messages per call of the sink, at most; 100 unless told. */
  readonly batchSize?: number | undefined
  /** How often to look for events where the database cannot wake us; 100 ms unless told. */
  readonly pollInterval?: Duration | undefined
  /** 4 attempts, 1 s doubling to 60 s, unless told. A sink that is unavailable uses up none. */
  readonly retry?: RetryOptions | undefined
  /** For an event that the sink refuses: `'park'`, `'skip'` or `'stop'`. */
  readonly onFailure?: 'park' | 'skip' | 'stop' | undefined
  /** Where a new relay begins; `'start'` unless told. */
  readonly from?: StartPoint | undefined
  /** For one call of the sink; 30 s unless told. */
  readonly timeout?: Duration | undefined
  /** How long it is remembered what was published when; 7 unless told. */
  readonly retentionDays?: number | undefined
  /** The `source` of the CloudEvents, a URI. */
  readonly source?: string | undefined
}

export interface RelayHandle extends SubscriptionHandle {
  /** Final events that were not published yet, oldest first; 100 unless told. */
  pending(limit?: number): Promise<AnyEvent[]>
  /**
   * Without `start()`: publishes one batch and answers how many events it had. 0 when there is nothing to do, or when
   * the relay is run by somebody. Rejects with what the sink says.
   */
  pollOnce(): Promise<number>
  /** Forgets what was published before a time; nothing is published again for it. */
  prune(before: Date): Promise<number>
}

export interface RelayDefaults {
  readonly pollIntervalMs: number
  readonly batchSize: number
  readonly retentionDays: number
}

export function checkSink(id: string, sink: Sink): void {
  if (typeof sink?.publish === 'function' && typeof sink.name === 'string') return
  throw new AftercommitError(
    'BAD_OPTION',
    `Relay "${id}" needs a sink with a name and a publish function in \`to\`, so it was not registered.`,
  )
}

export function checkDays(id: string, days: number): void {
  if (Number.isSafeInteger(days) && days >= 1 && days <= 36_500) return
  throw new AftercommitError(
    'BAD_OPTION',
    `Relay "${id}" needs whole \`retentionDays\` from 1 to 36500, so it was not registered.`,
  )
}
