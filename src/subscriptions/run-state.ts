/** What the parts of one run share. A run is one ownership of one subscription, from lease to release. */
import type { EventDefinitions } from '../events/index.ts'
import type { Tailer } from '../log/index.ts'
import type { Database, Transaction } from '../postgres/index.ts'
import type { Clock, Logger, Telemetry, ThrottledLog } from '../runtime/index.ts'
import type { CheckpointWriter } from './checkpoint-writer.ts'
import type { Definition } from './definition.ts'
import type { CallContext } from './handler-call.ts'
import type { Lanes } from './lanes.ts'
import type { Lease } from './lease-statements.ts'
import type { SubscriptionMetrics } from './metrics.ts'
import type { Progress } from './progress.ts'
import type { Saver } from './saver.ts'

export interface RunParts {
  readonly database: Database
  readonly tailer: Tailer
  readonly clock: Clock
  readonly logger: Logger
  /** Whether somebody reads lines at debug level. */
  readonly tellsDetails: boolean
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  readonly metrics: SubscriptionMetrics
  readonly definitions: EventDefinitions | undefined
  /** Gives a transaction the words of ours. */
  readonly wrapTransaction: (tx: Transaction) => unknown
  /** False while this process cannot prove that it is alive, or its lease may have run out. */
  readonly mayRun: () => boolean
  /** How far this subscription may read: the lowest checkpoint of those it comes after. */
  readonly limit: (() => Promise<bigint>) | undefined
  readonly storeStacks: boolean
}

/** Why a run ended. */
export type RunEnd = 'stopped' | 'lost' | 'needs newer code' | 'halted'

export interface RunState {
  readonly definition: Definition
  readonly lease: Lease
  readonly parts: RunParts
  readonly progress: Progress
  readonly lanes: Lanes
  readonly writer: CheckpointWriter
  readonly saver: Saver
  /** Keys with a letter in front of them. */
  readonly parkedKeys: Set<string>
  /** Calls under way. */
  readonly calls: Set<CallContext>
  /** How many more events an owner that died may have begun. */
  careful: number
  /** Events whose keys ran out of tries one after the other, with no success between. */
  streak: string[]
  failing: boolean
  handled: number
  readonly lost: boolean
  /** Nothing new is begun. */
  readonly ending: boolean
  /** Aborted when that is so. */
  readonly stopping: AbortSignal
  /** Calls in a row that found the destination of all events unavailable. */
  outages: number
  /** Nothing is begun until the destination is called again. */
  readonly isHeld: boolean
  hold(delayMs: number): void
  /** Ends the run when what is under way is finished. */
  end(why: RunEnd): void
  /** Look for marked letters. */
  nudge(): void
  /** Something may have become due. */
  wake(): void
  /**
   * Writes of the checkpoint run in here, one after the other, each when the outcome of the one before is known. A run that
   * has lost its lease writes nothing more.
   */
  exclusively<T>(write: () => Promise<T>): Promise<T>
  /**
   * The same for a write that has no number and is not repeated. Without an answer the database may still execute it, and a
   * later write of this run would then be undone or undo it, so the run ends there.
   */
  once<T>(write: () => Promise<T>): Promise<T>
  /** The reason shown in the database is out of date once something succeeds. */
  showsReason: boolean
  /** For lines that may repeat themselves for hours. */
  readonly logRepeatedly: ThrottledLog
}
