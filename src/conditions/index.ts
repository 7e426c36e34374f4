/**
 * Conditions: rules about events in CEL, compiled once, checked before they run, evaluated exactly, and explained.
 * This stage promises that a compiled condition never throws for an event, sees nothing but the scope it is given,
 * generates no code, and does a bounded amount of work however large the payload is.
 *
 * The parser and the regular expressions come from libraries that take some 30 ms to load, so this folder is imported
 * on first use: `const { createConditions } = await import('../conditions/index.ts')`. Importing its types is free.
 *
 * Start reading with condition.ts, then compile.ts. scope.ts is what a condition can see; shape.ts and known-fields.ts
 * are what is known before there is an event.
 */
import { type Condition, type ConditionOptions, compileCondition } from './condition.ts'
import { compileExpression, type Expression, type ExpressionOptions } from './expression.ts'

/** What observers and templates ask for; tests may put one of their own in its place. */
export interface Conditions {
  /** Throws ConditionError when the source cannot be used. */
  condition(source: string, options?: ConditionOptions): Condition
  /** Throws ConditionError when the source cannot be used. */
  expression(source: string, options?: ExpressionOptions): Expression
}

/** `env` lists the environment variables that may be named; without it every name is accepted. */
export function createConditions({ env }: { readonly env?: readonly string[] } = {}): Conditions {
  return {
    condition: (source, options) => compileCondition(source, { env, ...options }),
    expression: (source, options) => compileExpression(source, { env, ...options }),
  }
}

export {
  type Condition,
  type ConditionOptions,
  compileCondition,
  type ExplainedPart,
  type Explanation,
  type Verdict,
} from './condition.ts'
export { ConditionError } from './condition-error.ts'
export { compileExpression, type Expression, type ExpressionOptions } from './expression.ts'
export { knownFieldsOf } from './known-fields.ts'
export type { Locals } from './part.ts'
export { Scope, scopeOf } from './scope.ts'
export { type Kind, type KnownFields, mergeFields, type Shape } from './shape.ts'
export { Span } from './timestamps.ts'
