/**
 * Named readers of the log. A subscription has one owner in the whole cluster, fenced by a term; it handles events in
 * order, at least once, remembers how far it got, and passes what cannot be handled by way of a dead letter, so that
 * nothing is skipped silently. It relies on the log's frontier: what the tailer gives is final.
 *
 * Start with definition.ts (what users write), runner.ts (one subscription at work), keeper.ts (who runs what), then
 * lanes.ts, progress.ts and failure.ts, which decide and touch nothing.
 */
export { assertAuthorized } from './authorize.ts'
export {
  assertOpenId,
  type Definition,
  type DefinitionExtras,
  type HandlerContext,
  type SubscriptionOptions,
  toDefinition,
} from './definition.ts'
export { decideFailure, isHopeless, type Verdict } from './failure.ts'
export { afterFailure, FaultStreak, streakFields } from './fault-streak.ts'
export type { OperatorAction, SeekPreview, SubscriptionHandle } from './handle.ts'
export { type SubscriptionState, seekTo } from './handle-statements.ts'
export { CallContext, causedBy, type Leaving, withinTime } from './handler-call.ts'
export { refuseInsideHandler } from './handler-transaction.ts'
export { idempotent } from './idempotent.ts'
export { SUBSCRIPTION_FREE } from './lease-statements.ts'
export { type LeftAlert, type LeftLane, type LeftLetter, Leftovers, type LeftRow } from './leftovers.ts'
export { createProcessed, type Processed, pruneProcessed } from './processed.ts'
export { type MemorySink, type MemorySinkOptions, memorySink } from './relay/memory-sink.ts'
export type { RelayDefaults, RelayHandle, RelayOptions } from './relay/options.ts'
export { createRelays, type Relays } from './relay/relays.ts'
export { type Sink, type SinkFeatures, type SinkMessage, SinkUnavailable } from './relay/sink.ts'
export { createRetention } from './retention.ts'
export { selectVersion } from './statements.ts'
export { createSubscriptions, NUDGE, type Subscriptions, type SubscriptionsPart } from './subscriptions.ts'
export { type LateEvent, type SubscriptionVerdict, type VerifyReport, verify } from './verify.ts'
export { type Advice, adviceOf, GiveUp, NotNow, RetryAfter } from './words.ts'
