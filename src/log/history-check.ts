/**
 * Has history forked, and may the log be read at all? Asked now and then, and after every new connection: it may lead to
 * another server.
 */
import type { Pool } from '../postgres/index.ts'
import type { Clock, Health, Logger, LoopContext } from '../runtime/index.ts'
import { checkLog, type LogCheck } from './frontier-statements.ts'

const CHECK_MS = 30_000
const UNSAFE_MS = 5_000

export interface HistoryCheckOptions {
  readonly control: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly health: Health
  /** Told at every look which epoch it is. */
  readonly onEpoch: (found: LogCheck) => Promise<void>
}

export class HistoryCheck {
  readonly #options: HistoryCheckOptions
  #dueAt = 0
  /** Connections there had been at the last look. */
  #connections = -1

  constructor(options: HistoryCheckOptions) {
    this.#options = options
  }

  get isDue(): boolean {
    return this.#options.clock.monotonic() >= this.#dueAt
  }

  /** Whether what was just read is of the history that was looked at. If not, the next look is due. */
  isSameServer(): boolean {
    const isSame = this.#options.control.stats().made === this.#connections
    if (!isSame) this.#dueAt = 0
    return isSame
  }

  /** Resolves once the log may be read. */
  async look(context: LoopContext): Promise<void> {
    const { control, clock, logger, health, onEpoch } = this.#options
    for (;;) {
      const connections = control.stats().made
      const found = await checkLog(control)
      // The look itself may have made one; then it is looked at once more.
      this.#connections = connections
      this.#dueAt = clock.monotonic() + CHECK_MS
      await onEpoch(found)
      const { problem } = found
      if (problem === null) break
      health.report({ name: 'log', live: true, ready: false, reason: problem })
      logger.error({ code: 'LOG_UNSAFE' }, problem)
      await context.wait(UNSAFE_MS)
    }
    health.report({ name: 'log', live: true, ready: true })
  }
}
