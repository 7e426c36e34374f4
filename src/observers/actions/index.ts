/**
 * What observers can do. An action type has a schema for its keys and a `prepare` that compiles everything that can be
 * compiled, so that mistakes show when the configuration is loaded; a prepared action renders for one event and acts.
 * Nothing is sent before everything has been rendered and checked.
 *
 * Start with action.ts one folder up (the port), then webhook.ts. Loads zod and undici; nodemailer with the first mail.
 */
export { type ActionContextOptions, type ClosableActionContext, createActionContext } from './action-context.ts'
export { type ActionTypes, createActionTypes, findActionType, prepareAction, takenProblem } from './action-types.ts'
export { diagnoseRedis } from './cache-diagnose.ts'
export { shapeProblem } from './own-type.ts'
export { isSearch, type PreparedSearch } from './search.ts'
export { diagnoseSearch } from './search-diagnose.ts'
export type { SearchEngine } from './search-engine.ts'
export { createSmsApi } from './sms-api.ts'
export { createTemplateCompiler, type TemplateCompilerOptions } from './template-compiler.ts'
