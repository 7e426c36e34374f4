import { BudgetSpent } from './budget.ts'
import { type Compiled, type CompileOptions, compileSource } from './compile.ts'
import { CompileMistake, ConditionError, type Mistake } from './condition-error.ts'
import type { Locals, Part } from './part.ts'
import type { Scope } from './scope.ts'
import { Unresolved } from './unresolved.ts'

/** What conditions and expressions share: how they are refused, run, and reported when they fail. */
type Word = 'condition' | 'expression'

/** `fault` looks at the whole and says what is wrong with it, as the rest of a sentence. */
export function compileAs(
  word: Word,
  source: string,
  options: CompileOptions,
  fault: (whole: Part) => string | undefined,
): Compiled {
  try {
    const compiled = compileSource(source, options)
    const { start, end } = compiled.whole
    const problem = fault(compiled.whole)
    if (problem !== undefined) throw new CompileMistake({ source, start, end, problem })
    return compiled
  } catch (error) {
    if (error instanceof CompileMistake) throw refusal(word, error.mistake)
    throw error
  }
}

function refusal(word: Word, mistake: Mistake): ConditionError {
  return new ConditionError(`The ${word} cannot be used`, mistake)
}

export function evaluationError(word: Word, source: string, { start, end, problem }: Unresolved): ConditionError {
  const follows = word === 'condition' ? 'so it does not hold' : 'so it has no value'
  return new ConditionError(`The ${word} could not be evaluated, ${follows}`, { source, start, end, problem })
}

/** Never throws: what goes wrong unforeseen, such as a getter of a payload made in memory, is unresolved too. */
export function runPart(part: Part, scope: Scope, locals?: Locals): unknown {
  try {
    return part.run(scope, locals, undefined)
  } catch (error) {
    return new Unresolved(part, error instanceof BudgetSpent ? error.message : 'the payload cannot be read')
  }
}
