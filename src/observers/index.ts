/**
 * Observers: rules that react to events, written in TOML or TypeScript. Start reading with config/, which turns what was
 * written into what runs. Loads zod, CEL and an HTTP client, so it is imported on first use.
 */

export { DEFAULT_GROUP } from '../configuration/index.ts'
export type {
  ActionContext,
  ActionRequest,
  ActionResult,
  ActionType,
  CompiledText,
  CompiledTree,
  CustomContext,
  CustomHandler,
  PreparedAction,
  Preview,
  TemplateCompiler,
} from './action.ts'
export type { ActionTypes } from './actions/index.ts'
export { createAlerts } from './alerts.ts'
export { type BacktestOptions, type BacktestReport, runBacktest } from './backtest.ts'
export type { BacktestAction, BacktestObserver, BacktestProblem, BacktestSample } from './backtest-tally.ts'
export { type Checking, createChecking } from './checking.ts'
export {
  type ActionConfig,
  type ActionOptions,
  type ChangedSetting,
  type CheckedConfiguration,
  type CheckPorts,
  type ConfigurationDiff,
  checkConfiguration,
  checkOnlyPorts,
  conditionPorts,
  diffConfigurations,
  loadActionPackages,
  loadConfigurationFile,
  type ObserverConfig,
  type ObserverDiff,
  type ObserverOptions,
  type PrepareAction,
  type RefusedConfiguration,
  toJsonSchema,
  toObserverConfig,
} from './config/index.ts'
export { diagnoseProviders } from './diagnose-providers.ts'
export { diagnoseStrays } from './diagnose-strays.ts'
export { createEngine, type Engine, type EngineParts, type InForce } from './engine.ts'
export { createExecutor, createRunningObserver, type EventOutcome } from './executor.ts'
export { type EventExplanation, type ExplainedAction, type ExplainedObserver, explainEvent } from './explain.ts'
export type { ActionState, ExplainedAttempt } from './explain-action.ts'
export type { RuleVerdict } from './explain-rule.ts'
export { diagnoseLacking, findLacking } from './lacking.ts'
export { listedEnv } from './listed-env.ts'
export { judgeUrl, parseRules } from './network/index.ts'
export { createPreparing, type Preparing } from './preparing.ts'
export { subscriptionOf } from './rules.ts'
export type { ActionRecord, RunRecord } from './run-record.ts'
export { type ReindexOptions, runReindex } from './search-reindex.ts'
export type { ReindexedIndex, ReindexProblem, ReindexReport } from './search-reindex-tally.ts'
export { type ActionStatus, type ObserverStatus, readObserverStatus } from './status.ts'
export type { CustomFilter } from './templates/index.ts'
