import { type Clock, systemClock } from './clock.ts'
import { formatDuration } from './duration.ts'
import { createHealth, type Health } from './health.ts'
import { type Logger, silentLogger } from './logger.ts'
import { createRegistry, type Registry } from './metrics.ts'
import { summarizeError } from './redact.ts'
import { redacting } from './redacting-logger.ts'
import { createThrottledLog } from './throttled-log.ts'

/**
 * What a supervised loop tells the world, in one place: log lines, the failure counter and health. None of it throws.
 */
export interface LoopReport {
  started(): void
  /** A run made progress. `first` = for the first time: only then is the loop ready. */
  beat(first: boolean): void
  idle(): void
  failed(error: unknown, failures: number, delayMs: number): void
  recovered(failures: number): void
  listenerFailed(error: unknown): void
  stopping(): void
  failedWhileStopping(error: unknown): void
  /** Stopping takes too long. */
  overdue(error: unknown): void
  stopped(): void
}

export interface LoopReportOptions {
  clock?: Clock
  logger?: Logger
  metrics?: Registry
  health?: Health
  /** A run that neither beats nor waits for this long is stuck, and health says so. */
  beatWithinMs?: number
}

export function createLoopReport(loop: string, options: LoopReportOptions): LoopReport {
  const { clock = systemClock, beatWithinMs = 60_000 } = options
  const { health = createHealth({ clock }), metrics = createRegistry({ clock }) } = options
  const logger = redacting(options.logger ?? silentLogger)
  const logRepeatedly = createThrottledLog({ logger, clock })
  const failureCount = metrics
    .counter({
      name: 'aftercommit_loop_failures_total',
      help: 'Runs of a loop that ended unexpectedly; each is followed by a restart.',
      labels: ['loop'],
    })
    .labels({ loop })
  let pulse = { beat() {}, idle() {} }

  const notReady = (what: string, live = true) =>
    health.report({ name: loop, live, ready: false, reason: `${loop} ${what}` })

  return {
    started() {
      pulse = health.pulse(loop, beatWithinMs)
      notReady('is in its first round')
    },
    beat(first) {
      pulse.beat()
      if (first) health.report({ name: loop, live: true, ready: true })
    },
    idle: () => pulse.idle(),
    failed(error, failures, delayMs) {
      pulse.idle()
      failureCount.inc()
      const { name, code } = summarizeError(error)
      // The code and not the message: probes are answered in public, and a message may quote an address.
      const kind = code ?? name
      notReady(`failed (${kind}) and starts again in ${formatDuration(delayMs)}`)
      const fields = { loop, failures, delay_ms: delayMs, err: error }
      logRepeatedly('error', kind, fields, `${loop} failed and will be started again`)
    },
    recovered(failures) {
      logger.info({ loop, failures }, `${loop} runs well again`)
    },
    listenerFailed(error) {
      logger.error({ loop, err: error }, `a listener to restarts of ${loop} failed`)
    },
    stopping: () => notReady('is stopping'),
    failedWhileStopping(error) {
      logger.warn({ loop, err: error }, `${loop} failed while it was stopping`)
    },
    overdue(error) {
      notReady('was asked to stop and has not ended', false)
      logger.error({ loop, err: error }, `${loop} was asked to stop and has not ended; its work may still be running`)
    },
    stopped: () => health.forget(loop),
  }
}
