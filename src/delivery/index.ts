/**
 * Durable work: what must be done outside of a transaction, by whichever process can do it. The stage promises that
 * work added in a transaction is done at least once after it committed, that a worker which lost its claim changes
 * nothing, and that a delivery which cannot be done ends as a dead letter with its true number of attempts. It knows
 * nothing of observers or workflows: they register what they can do.
 *
 * Start with delivery.ts (the words) and attempt.ts (one call, from its start to its end). first-attempts.ts begins attempts
 * for events, without a row; worker.ts claims rows and begins theirs; in-flight.ts counts both; destinations.ts answers
 * whether an attempt may start now; outcomes.ts decides what follows. sql/delivery/ has claims, limits and segments, and
 * operations.ts is for operators. docs/concepts/delivery.md follows one event through these files.
 */

export type { Delivery, DeliveryKind, NewDelivery, RunContext, Work } from './delivery.ts'
export { type DestinationLimits, saveLimits } from './destination-statements.ts'
export { decideOutcome } from './failure.ts'
export type { Reaction, ReactionEnd, Reactions } from './first-attempts.ts'
export { diagnoseDeliveries } from './inspect-findings.ts'
export { sparingly } from './inspect-metrics.ts'
export type { DeliveryDetails, DeliveryFilter, DeliveryRecord, DeliveryState } from './inspect-statements.ts'
export type { DeliveryPause, DestinationState, OrphanedWork, WorkName } from './inspect-work.ts'
export type { DeliveryAction, PauseTarget } from './operate-pause.ts'
export { createDeliveries, type Deliveries, type DeliveryChoice } from './operations.ts'
export type { TakenAlong } from './outcome-writer.ts'
export { type Claiming, createDelivering, type Delivering, type DeliveryOptions } from './stage.ts'
export { WORKERS_NUDGE } from './worker-statements.ts'
