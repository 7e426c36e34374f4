/**
 * The ground everything stands on: time, waiting, failing and being watched. It promises that a long-running part
 * built from `createLoop` is restarted when it fails, says so in the log, in a metric and in health, and can be stopped
 * at any time; that every delay comes from an injected clock; and that no line leaves with a secret in it. It relies on
 * nothing but Node. Start reading with `loop.ts`, then `service.ts` and `group.ts`. Ways to share and order work have a file
 * each: `batcher.ts`, `in-turn.ts`, `retry-until.ts` and `bisect.ts`.
 */

export { type AnswerRules, checkAnswer } from './answer.ts'
export { type Backoff, type BackoffStrategy, backoffDelay, LONGEST_ASKED_MS, reconnectDelay } from './backoff.ts'
export { type Batcher, type BatcherOptions, createBatcher } from './batcher.ts'
export { type BisectStep, bisect } from './bisect.ts'
export { type Clock, systemClock } from './clock.ts'
export { type ConsoleLoggerOptions, consoleLogger } from './console-logger.ts'
export { type Cause, currentCause, runWithCause } from './context.ts'
export { createDrainLimit, type DrainLimit } from './drain-limit.ts'
export { type Duration, formatDuration, toMs } from './duration.ts'
export { METRICS_CONTENT_TYPE } from './exposition.ts'
export { createGroup, type GroupOptions } from './group.ts'
export { createHealth, type Health, type HealthReport, type PartHealth, type Pulse } from './health.ts'
export { createInTurn, createInTurnByKey, type InTurn, type InTurnByKey } from './in-turn.ts'
export { type Abortable, LazySignal } from './lazy-signal.ts'
export { type Logger, type LogLevel, silentLogger } from './logger.ts'
export { createLoop, type Loop, type LoopContext, type LoopOptions, type Restart } from './loop.ts'
export { isSecretName, maskSecrets } from './mask.ts'
export type { Labels } from './metric-series.ts'
export type {
  Collected,
  Collector,
  Counter,
  CounterSeries,
  Gauge,
  GaugeSeries,
  Histogram,
  HistogramSeries,
} from './metric-types.ts'
export { createRegistry, type MetricDefinition, type Registry, type RegistryOptions } from './metrics.ts'
export { type OpenTelemetryApi, openTelemetry } from './open-telemetry.ts'
export type { PartOptions } from './part.ts'
export { type ErrorSummary, summarizeError } from './redact.ts'
export { redacting } from './redacting-logger.ts'
export { parseRetry, type RetryOptions, type RetryPolicy } from './retry.ts'
export { type RetryUntilOptions, retryUntil } from './retry-until.ts'
export type { Service, ServiceState } from './service.ts'
export { abortable, withDeadline, withTimeout } from './signal.ts'
export {
  type Attributes,
  MESSAGING,
  messagingAttributes,
  noTelemetry,
  parseTraceparent,
  type Telemetry,
} from './telemetry.ts'
export { createTestClock, type TestClock } from './test-clock.ts'
export { isThenable } from './thenable.ts'
export { createThrottledLog, type ThrottledLog, type ThrottledLogOptions } from './throttled-log.ts'
export { createWaker, type WaitOutcome, type Waker } from './waker.ts'
