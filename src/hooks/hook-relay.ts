/**
 * The port of something outside that carries word between processes, such as Redis pub/sub. Events stay in the log and
 * reach hooks from there; a relay makes a process look at once where the database cannot ring it.
 */
import type { AnyEvent } from '../log/index.ts'
import type { Clock, Health, Logger, Registry } from '../runtime/index.ts'

export interface HookRelay {
  /** For logs and health. */
  readonly name: string
  /**
   * Called when the instance starts; after `stop` it may be called again. Resolves when the relay works or has failed for
   * the first time: one that cannot reach its server goes on trying, and says in health that it is not ready. Rejects
   * only for what waiting does not mend.
   */
  start(host: RelayHost): Promise<void>
  /** Called once no event is being published. */
  stop(): Promise<void>
}

export interface RelayHost {
  /** What this process is known by. */
  readonly process: string
  /** The schema that holds the log. */
  readonly schema: string
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
  /** How far this process has read the log. Every event that it publishes lies at or below. */
  place(): { readonly epoch: number; readonly position: bigint }
  /** Whether the database rings this process when something is committed. */
  isRung(): boolean
  /** Look at the log now. */
  nudge(): void
  /** Hands over every event in order, at least once, in one process of the cluster at a time. */
  publishFrom(publisher: RelayPublisher): void
}

export interface RelayPublisher {
  /** The subscription that keeps the place; stable over releases. */
  readonly id: string
  /** This process is the one that publishes from now on, until `over` fires. */
  onChosen(over: AbortSignal): void
  /** One call after the other. A rejection means that none or some were published: they come again until it resolves. */
  publish(events: readonly AnyEvent[]): Promise<void>
}
