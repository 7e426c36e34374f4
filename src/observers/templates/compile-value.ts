/** `expression | filter | filter` becomes one function from a rendering to a value. */
import type { KnownFields, Scope } from '../../conditions/index.ts'
import { findFilter, orderArguments, readLiteral } from './arguments.ts'
import { type Budget, Meter } from './budget.ts'
import {
  type CompiledExpression,
  type ExpressionCompiler,
  expressionError,
  isAbsence,
  type Locals,
  withoutReservedWords,
} from './expressions.ts'
import type { Filters } from './filters.ts'
import { type FilterCall, parsePipeline } from './pipeline.ts'
import type { Code, Fail } from './scan.ts'
import { at, type Place, placed, Refusal } from './template-error.ts'
import { weigh } from './weight.ts'

/** One rendering. */
export interface Run {
  readonly scope: Scope
  readonly meter: Meter
  /** Undefined outside of loops. */
  locals: Locals | undefined
  /** Known once somebody asked. */
  payloadWeight: number | undefined
}

export function startRun(scope: Scope, budget: Required<Budget>): Run {
  return { scope, meter: new Meter(budget), locals: undefined, payloadWeight: undefined }
}

export type Value = (run: Run) => unknown

/** What the parts of one template share while it is compiled. */
export interface Context {
  readonly name: string
  readonly source: string
  readonly filters: Filters
  readonly expressions: ExpressionCompiler
  readonly fields: KnownFields | undefined
  readonly env: readonly string[] | undefined
  readonly fail: Fail
}

export interface CompiledValue {
  readonly read: Value
  /** The last filter, which may do the work of the field: `urlencode` in an address. */
  readonly lastFilter: string | undefined
}

export function compileValue(code: Code, locals: readonly string[], context: Context): CompiledValue {
  const { expression, calls } = parsePipeline(code, context.fail)
  const first = compileExpressionAt(expression, locals, context)
  const filters = calls.map((call) => compileCall(call, locals, context))
  if (filters.length === 0) return { read: first, lastFilter: undefined }
  return {
    read: (run) => filters.reduce((value, filter) => filter(value, run), first(run)),
    lastFilter: calls.at(-1)?.name,
  }
}

export function placeOf({ source, offset }: Code, context: Context): Place {
  return { name: context.name, source: context.source, offset, length: source.length }
}

function compileExpressionAt(code: Code, locals: readonly string[], context: Context): Value {
  const place = placeOf(code, context)
  const expression = compileOrFail()
  /** Made when one is absent: most templates never need it. */
  let operands: Map<string, CompiledExpression> | undefined
  const inLoop = locals.length > 0
  const isCostly = inLoop && MAY_BE_COSTLY.test(code.source)
  return (run) => {
    try {
      run.meter.spend(isCostly ? costOfReading(run) : 1)
      const value = expression.evaluate(run.scope, run.locals)
      if (typeof value === 'string') run.meter.checkLength(value)
      else if (inLoop && typeof value === 'object' && value !== null) run.meter.spend(costOfReading(run))
      return value
    } catch (error) {
      if (isAbsence(error, compileOperand, run)) return undefined
      throw error instanceof Refusal ? placed(error, place, 'render') : expressionError(error, place, 'render')
    }
  }

  function compileOperand(source: string): CompiledExpression {
    operands ??= new Map()
    const compiled = operands.get(source) ?? context.expressions(source, { locals })
    operands.set(source, compiled)
    return compiled
  }

  function compileOrFail(): CompiledExpression {
    try {
      const { expressions, fields, env } = context
      return expressions(withoutReservedWords(code.source, locals), { locals, fields, env })
    } catch (error) {
      throw expressionError(error, place, 'load')
    }
  }
}

/**
 * A call or `in` may read the whole payload, and so may a filter that is given an object. Once, that is bounded anyway;
 * in a loop it would happen ten thousand times, so there it costs a step more for each kilobyte of payload.
 */
function costOfReading(run: Run): number {
  run.payloadWeight ??= weigh(run.scope.payload)
  return 1 + (run.payloadWeight >> 10)
}

const MAY_BE_COSTLY = /\(|\bin\b/

type Step = (value: unknown, run: Run) => unknown

function compileCall(call: FilterCall, locals: readonly string[], context: Context): Step {
  const filter = findFilter(context.filters, call, context.fail)
  const codes = orderArguments(filter, call, context.fail)
  const place = placeOf({ source: call.name, offset: call.offset }, context)
  const literals = codes.map((code) => (code === undefined ? undefined : readLiteral(code)))
  at(place, 'load', () => filter.check?.(literals))
  const readers = codes.map((code, index) => compileArgument(code, literals[index], locals, context))
  const isConstant = codes.every((code, index) => code === undefined || literals[index] !== undefined)
  return (value, run) => {
    const args = isConstant ? literals : readers.map((read) => read(run))
    return at(place, 'render', () => {
      run.meter.spendOn(value)
      const result = filter.apply(value, args, run.meter.budget.bytes)
      if (typeof result === 'string') run.meter.spend(result.length >> 8)
      return result
    })
  }
}

/** Undefined means "left out", so an argument that is given and absent is null: it must not become the default. */
function compileArgument(code: Code | undefined, literal: unknown, locals: readonly string[], context: Context): Value {
  if (code === undefined || literal !== undefined) return () => literal
  const read = compileExpressionAt(code, locals, context)
  return (run) => read(run) ?? null
}
