/**
 * `aftercommit/testing`: what tests of an application need. The in-memory twin says the same words as an instance and
 * delivers before `emit` returns; `testDatabase` is the real thing, thrown away afterwards. The contract suites hold a
 * twin, a sink or an adapter of yours to what the real ones promise.
 *
 * Observers have an executor of their own, observers.ts. Workflows are told as stories with `given`, workflow-given.ts, or
 * run in memory, workflow-memory.ts.
 *
 * Start with memory-bus.ts, then memory-reader.ts (one subscription at work) and memory-log.ts (what the database does).
 */
export { createTestClock as testClock, type TestClock } from '../runtime/index.ts'
export { type ActionUnderTest, describeActionType } from './action-contract.ts'
export { type FakeEventSource, fakeEventSource } from './fake-event-source.ts'
export { type MemoryBus, type MemoryBusOptions, memoryBus, type ParkedKey } from './memory-bus.ts'
export { type MemoryDeadLetters, memoryDeadLetters } from './memory-dead-letters.ts'
export type { HandlerFailure } from './memory-reader.ts'
export type { MemoryTransaction } from './memory-transaction.ts'
export { createObserverExecutor, type ObserverExecutor, type ObserverExecutorOptions } from './observers.ts'
export { type AskedAction, type RecordingActions, recordingActions, type TestActions } from './observers-actions.ts'
export type { SentAlert } from './observers-alerts.ts'
export type { TestConfig } from './observers-config.ts'
export { type FakeConditions, type FakeTemplates, fakeConditions, fakeTemplates } from './observers-fakes.ts'
export type { ExecutionSummary, ObservedAction, ObservedActions } from './observers-results.ts'
export { describeSink, type ReadMessage, type SinkUnderTest } from './sink-contract.ts'
export { describeSubscriptions, type SubscriptionsUnderTest, type TestFramework } from './subscriptions-contract.ts'
export { type TestBroadcaster, testBroadcaster } from './test-broadcaster.ts'
export {
  type TestDatabase,
  type TestDatabaseOptions,
  type TestServer,
  testDatabase,
  testServer,
} from './test-database.ts'
export { type TestEventInput, testEvent } from './test-event.ts'
export { describeWorkflows, type WorkflowsUnderTest } from './workflow-contract.ts'
export type { Expected, Happened } from './workflow-expected.ts'
export { type Given, type GivenOptions, given, type When } from './workflow-given.ts'
export { type MemoryWorkflows, type MemoryWorkflowsOptions, memoryWorkflows } from './workflow-memory.ts'
