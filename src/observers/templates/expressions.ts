/** Where templates meet the language of conditions. */
import { ConditionError, type KnownFields, type Scope } from '../../conditions/index.ts'
import { renameVariable } from './code-text.ts'
import { type Place, TemplateError } from './template-error.ts'

/** What a template needs of the expression language: `compileExpression`, or what a test puts in its place. */
export type ExpressionCompiler = (source: string, options: ExpressionSurroundings) => CompiledExpression

export interface ExpressionSurroundings {
  /** Variables of the loops around, and of `loop` when there are any, which goes by the name `LOOP`. */
  readonly locals: readonly string[]
  readonly fields?: KnownFields | undefined
  readonly env?: readonly string[] | undefined
}

export interface CompiledExpression {
  /** Null or undefined for what is absent. Throws when there is no answer, best of all a `ConditionError`. */
  evaluate(scope: Scope, locals?: Locals): unknown
}

export type Locals = Readonly<Record<string, unknown>>

/** `loop` is a reserved word of CEL. A name of the same length keeps the offsets of mistakes true. */
export const LOOP = '_lp_'

export function withoutReservedWords(source: string, locals: readonly string[]): string {
  return locals.includes(LOOP) ? renameVariable(source, 'loop', LOOP) : source
}

/**
 * Whether an expression has no value only because it calculates with something absent, as `total * 2` may. Such a value
 * counts as absent itself, so that `default` and `{% if %}` treat it as conditions do. The error names the operand; if
 * that by itself is absent, nothing else is wrong.
 */
export function isAbsence(
  error: unknown,
  compile: (operand: string) => CompiledExpression,
  run: Surroundings,
): boolean {
  if (!(error instanceof ConditionError)) return false
  try {
    const value = compile(error.source.slice(error.offset, error.end)).evaluate(run.scope, run.locals)
    return value === null || value === undefined
  } catch {
    return false
  }
}

interface Surroundings {
  readonly scope: Scope
  readonly locals: Locals | undefined
}

/** Gives what the expression language complains about its place in the template. */
export function expressionError(error: unknown, place: Place, when: 'load' | 'render'): TemplateError {
  if (!(error instanceof ConditionError)) {
    const reason = `the expression cannot be ${when === 'load' ? 'read' : 'evaluated'}`
    return new TemplateError(place, when, { reason, advice: 'The cause says why.', cause: error })
  }
  const { problem, suggestion, offset, end } = error
  const exact = { ...place, offset: place.offset + offset, length: Math.max(1, end - offset) }
  const reason = problem.replaceAll(LOOP, 'loop')
  const advice = when === 'load' ? 'Expressions are written as in conditions.' : 'Test for it with {% if %}.'
  return new TemplateError(exact, when, {
    reason,
    advice,
    ...(suggestion === undefined ? {} : { suggestion }),
    cause: error,
  })
}
