import { AftercommitError } from '../errors.ts'
import { endBudget, startBudget } from './budget.ts'
import type { CompileOptions } from './compile.ts'
import { compileAs, evaluationError, runPart } from './evaluate.ts'
import type { Locals } from './part.ts'
import { isReserved, type Scope } from './scope.ts'
import { Unresolved } from './unresolved.ts'

/** An expression whose value is wanted: a part of a template, or `order_by`. */
export interface Expression {
  readonly source: string
  /**
   * The value: null, true or false, number, bigint, ExactNumber, text, Date, Span, list or object. A field that is
   * absent is null. Throws ConditionError when there is no value, which is so when an absent field is calculated with.
   */
  evaluate(scope: Scope, locals?: Locals): unknown
}

export interface ExpressionOptions extends CompileOptions {
  /** Names besides those of the event. They win over payload fields, and cannot be reserved names. */
  readonly locals?: readonly string[] | undefined
}

/** Throws ConditionError, with the place and the nearest name, when the source cannot be used. */
export function compileExpression(source: string, options: ExpressionOptions = {}): Expression {
  const reserved = options.locals?.find(isReserved)
  if (reserved !== undefined) {
    const reason = `"${reserved}" always means what belongs to the event, so it cannot be a local name.`
    throw new AftercommitError('BAD_OPTION', `${reason} Choose another one.`)
  }
  const { whole } = compileAs('expression', source, options, () => undefined)
  return {
    source,
    evaluate: (scope, locals) => {
      startBudget()
      const value = runPart(whole, scope, locals)
      endBudget()
      if (value instanceof Unresolved) throw evaluationError('expression', source, value)
      return value ?? null
    },
  }
}
