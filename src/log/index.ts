/**
 * The log: emit into the caller's transaction, read forward in an order that neither skips nor stalls. It promises that
 * what a reader has passed is final, that a rolled-back event never appears, and that waking readers costs writers
 * nothing under load. It relies on one sequence with CACHE 1 and on the locks that nextval takes (frontier.ts).
 *
 * Start with emit.ts (the way in), frontier.ts (the algorithm), tailer.ts (the loop around it) and log.ts (the way out).
 */
export { EventIdTakenError, VersionConflictError } from './append-error.ts'
export type { EventTrace } from './causes.ts'
export { diagnose } from './doctor.ts'
export {
  type EmitInput,
  type EmitRequest,
  type EmitSettings,
  type Emitted,
  emitEvent,
  emitEvents,
  emitOwn,
  type OwnInput,
} from './emit.ts'
export type { AnyEvent } from './event-row.ts'
export { type FollowedLog, Follower } from './follower.ts'
export { createFollowing, type Following } from './following.ts'
export type { Holder } from './frontier-statements.ts'
export { type PartitionStatus, readStatus, type ServerStatus, type Status } from './inspect.ts'
export type { ProcessStatus } from './inspect-statements.ts'
export {
  createLog,
  type ListOptions,
  type Log,
  type LogStatus,
  liftEvent,
  type ReadOptions,
  type StreamOptions,
  settledPosition,
  type TailOptions,
} from './log.ts'
export { afterFailure, FIRST_WINDOW, type ReadWindow } from './read-window.ts'
export { type LogSettings, readLogSettings, saveLogSettings } from './settings.ts'
export { findPosition, isStartPoint, type StartPoint } from './start-point.ts'
export { declareStream } from './statements.ts'
export type { FilteredPage, Page, PageFilter, Tailer, TailerStatus } from './tailer.ts'
export type { UnblockRequest, UnblockTarget } from './unblock.ts'
export { runUpkeep, type UpkeepReport } from './upkeep.ts'
