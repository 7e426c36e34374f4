/**
 * Workflows: long-lived processes as pure deciders, with durable effects and timers. The stage promises that what follows
 * from an input is written as a whole or not at all, that inputs of one instance are decided one after the other, and that
 * the end of an effect or timer and what it leads to are one transaction. It relies on the log, which holds the histories,
 * and on delivery, which does the effects and fires the timers.
 *
 * Start with workflow.ts (what users write), decide-step.ts (what follows from an input; pure), engine.ts (one input) and
 * sql/workflows/ (how it is kept); workflows.ts puts the parts together.
 */
export type { Chain, StoredChain } from './chain.ts'
export type { CheckOptions } from './check.ts'
export type { DifferingPath } from './check-paths.ts'
export type { CheckedInput, CheckedType, CheckFinding, CheckReport, DifferingEvent } from './check-report.ts'
export { type AcceptedStep, type ArmedTimer, decideStep, type Step, type WrittenEvent } from './decide-step.ts'
export {
  type Accept,
  type AcceptOptions,
  accept,
  after,
  at,
  type Decision,
  type Reject,
  reject,
  type Timer,
  type TimerOptions,
} from './decision.ts'
export { defineWorkflow } from './define-workflow.ts'
export { type MachineState, type MachineTransition, type StateMachine, toDot, toMermaid } from './diagram.ts'
export { type ExploreOptions, exploreWorkflow } from './diagram-explore.ts'
export { type RetraceOptions, retraceWorkflow } from './diagram-retrace.ts'
export { effectWorks } from './effects.ts'
export { createEngine, type Engine, type EngineOptions, type ExecuteRequest, type InstanceState } from './engine.ts'
export { deepFreeze } from './freeze.ts'
export type { TimerSummary } from './inspect-statements.ts'
export { firstTimer, NOTHING_PENDING, type Pending, pendingAfter, without } from './pending.ts'
export { type Current, liftPayload } from './replay.ts'
export type { ScheduleOptions } from './schedule.ts'
export type { StoredSchedule } from './schedule-statements.ts'
export { createSchedules, type Schedules } from './schedules.ts'
export type {
  Found,
  HistoryEvent,
  InstanceRef,
  InstanceSummary,
  NewEffect,
  NewEvent,
  NewTimer,
  Observation,
  RecordedOutcome,
  Snapshot,
  Standing,
  StepRequest,
  StepWrite,
  WorkflowStore,
  Written,
} from './store.ts'
export { timerWork } from './timers.ts'
export type { EffectPayload, TimerPayload } from './to-write.ts'
export type {
  DecideContext,
  EffectContext,
  EffectHandler,
  EffectHandlers,
  EffectName,
  EffectWork,
  EventVersions,
  ObserveOptions,
  Outcome,
  SnapshotOptions,
  Workflow,
  WorkflowLetter,
  WorkflowOptions,
} from './workflow.ts'
export { UndecodableEventError, UniqueKeyTakenError, unknownWorkflow, WorkflowPausedError } from './workflow-error.ts'
export {
  createWorkflows,
  type ExecuteOptions,
  type HistoryOptions,
  type ListWorkflowsOptions,
  type RegisterOptions,
  type WorkflowAction,
  type WorkflowPage,
  type Workflows,
  type WorkflowsPart,
} from './workflows.ts'
