import { endBudget, startBudget } from './budget.ts'
import type { CompileOptions } from './compile.ts'
import type { ConditionError } from './condition-error.ts'
import { compileAs, evaluationError, runPart } from './evaluate.ts'
import { describeValue } from './names.ts'
import { withParentheses } from './parse.ts'
import type { Part } from './part.ts'
import type { Scope } from './scope.ts'
import { canBe, describeShape } from './shape.ts'
import { Unresolved } from './unresolved.ts'

/** Whether a condition holds for an event. What could not be evaluated does not hold, and says why. */
export type Verdict =
  | { readonly holds: true }
  /** `absent` names the field whose absence decided, as the condition writes it. */
  | { readonly holds: false; readonly absent?: string; readonly error?: undefined }
  | { readonly holds: false; readonly absent?: undefined; readonly error: ConditionError }

export interface Condition {
  readonly source: string
  /** Never throws, whatever the event holds. */
  evaluate(scope: Scope): Verdict
  /** Why it holds or not. The values come from the payload: show them to who asks, and log them never. */
  explain(scope: Scope): Explanation
}

export interface Explanation {
  readonly verdict: Verdict
  /** Every part but the literals, in the order of the source, outer before inner. */
  readonly parts: readonly ExplainedPart[]
}

export interface ExplainedPart {
  readonly source: string
  /** Offsets into the source of the condition. */
  readonly start: number
  readonly end: number
  /** Undefined for a field that is absent. */
  readonly value?: unknown
  /** Set instead of a value: the operand whose absence leaves this part without one. */
  readonly absent?: string
  /** Set instead of a value: why there is none. */
  readonly error?: string
}

export interface ConditionOptions extends Pick<CompileOptions, 'fields' | 'env'> {
  /** Absent fields in comparisons are errors rather than reasons not to hold. False unless told. */
  readonly strict?: boolean | undefined
}

/** Throws ConditionError, with the place and the nearest name, when the source cannot be used. */
export function compileCondition(source: string, { strict = false, ...options }: ConditionOptions = {}): Condition {
  const { whole, parts } = compileAs('condition', source, options, ({ shape }) =>
    canBe(shape, 'bool') ? undefined : `it is ${describeShape(shape)}, and a condition is true or false`,
  )
  const evaluate = (scope: Scope): Verdict => {
    startBudget()
    const value = runPart(whole, scope)
    endBudget()
    if (value === true) return HOLDS
    return value === false ? DOES_NOT_HOLD : toVerdict(value, whole, source, strict)
  }
  const shown = parts.filter(({ constant }) => constant === undefined)
  return {
    source,
    evaluate,
    explain: (scope) => {
      const verdict = evaluate(scope)
      startBudget()
      const explained = shown.map((part) => explainPart(part, source, scope))
      endBudget()
      return { verdict, parts: explained }
    },
  }
}

const HOLDS: Verdict = Object.freeze({ holds: true })
const DOES_NOT_HOLD: Verdict = Object.freeze({ holds: false })

/** For a value that is neither true nor false. */
function toVerdict(value: unknown, whole: Part, source: string, strict: boolean): Verdict {
  const isAbsent = value === undefined || value === null
  const text = source.trim()
  const absent = value instanceof Unresolved ? value.absent : isAbsent ? text : undefined
  if (absent !== undefined && !strict) return { holds: false, absent }
  if (value instanceof Unresolved) return { holds: false, error: evaluationError('condition', source, value) }
  const found = isAbsent
    ? `${text} is absent or null`
    : `it is ${describeValue(value)}, and a condition is true or false`
  return { holds: false, error: evaluationError('condition', source, new Unresolved(whole, found)) }
}

function explainPart(part: Part, source: string, scope: Scope): ExplainedPart {
  const { start, end } = withParentheses(source, part)
  const place = { source: source.slice(start, end), start, end }
  const value = runPart(part, scope)
  if (!(value instanceof Unresolved)) return { ...place, value }
  return value.absent === undefined ? { ...place, error: value.problem } : { ...place, absent: value.absent }
}
