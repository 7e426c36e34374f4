/**
 * Observers as they are written, in TOML or in TypeScript, and the way to observers that run: one schema, every mistake
 * at once with its place, every default filled in. It relies on configuration/ for reading and pointing, and gets
 * conditions, templates and actions through ports, so that checking needs none of them running.
 *
 * Start reading with check-configuration.ts, then check-observer.ts and check-action.ts.
 */
export { loadActionPackages, type WithPackages } from './action-packages.ts'
export {
  type CheckedConfiguration,
  checkConfiguration,
  loadConfigurationFile,
  type RefusedConfiguration,
} from './check-configuration.ts'
export { type ChangedSetting, type ConfigurationDiff, diffConfigurations, type ObserverDiff } from './diff.ts'
export { type JsonSchema, toJsonSchema } from './json-schema.ts'
export { type ActionConfig, type CompiledObserver, DEFAULT_RETRY, type ObserverConfig } from './observer-config.ts'
export { type ActionOptions, type ObserverOptions, toObserverConfig } from './observer-options.ts'
export type { CheckPorts, ConditionOptions, ExpressionOptions, PrepareAction } from './ports.ts'
export { shareTemplates } from './share-templates.ts'
export { checkOnlyPorts, conditionPorts, shareExpressions } from './standard-ports.ts'
