/** Says every few seconds that this process is alive, and learns whether the server may be asked to ring. */
import type { Pool } from '../postgres/index.ts'
import { type ProcessInfo, registerProcess } from '../processes/index.ts'
import type { Clock, Logger } from '../runtime/index.ts'
import { beatHeart } from './wake-statements.ts'

const HEARTBEAT_MS = 10_000
/** Of the notification queue of the server: beyond it nobody rings, as a full queue fails commits. */
const MOST_USED = 0.5

export interface HeartbeatOptions {
  readonly control: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly info: ProcessInfo
  /** The name of the lock that proves this process alive; null while it is not held. */
  readonly lockKey: () => string | null
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  #dueAt = 0
  #wake: 'doorbell' | 'poll' = 'doorbell'
  #queueFull = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  get isDue(): boolean {
    return this.#options.clock.monotonic() >= this.#dueAt
  }

  /** By what was last heard. */
  get mayBeRung(): boolean {
    return this.#wake === 'doorbell' && !this.#queueFull
  }

  /** Others are to learn at once how things stand here. */
  hurry(): void {
    this.#dueAt = 0
  }

  /** With `armed`, false says that the mark of this process is gone. */
  async beat(armed: boolean): Promise<boolean> {
    const { control, clock, info, logger, lockKey } = this.#options
    // Before the statement: whoever asks for another one meanwhile gets it.
    this.#dueAt = clock.monotonic() + HEARTBEAT_MS
    const { queueUsage, wake, registered, marked } = await beatHeart(control, info.process, armed)
    this.#wake = wake
    const isFull = queueUsage >= MOST_USED
    if (isFull && !this.#queueFull) {
      logger.warn(
        { usage: queueUsage },
        'the notification queue of the server is more than half full, so nobody rings; find the session that listens and stays in a transaction',
      )
    }
    this.#queueFull = isFull
    if (!registered) await registerProcess(control, info, lockKey())
    return marked
  }
}
