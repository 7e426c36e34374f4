/** The answer of a function that the program gave and that must answer at once: TypeScript checks it, plain JavaScript does not. */
import { AftercommitError } from '../errors.ts'
import { isThenable } from './thenable.ts'

export interface AnswerRules {
  /** Names the function and what it belongs to: `` `key` of subscription "mail" ``. */
  readonly what: string
  /** What follows, after "so": `nothing was written`. */
  readonly so: string
  /** Whether `undefined` is an answer. Default: false. */
  readonly optional?: boolean | undefined
  /** Default: how to make the function synchronous. */
  readonly advice?: string | undefined
}

/** A promise would count as true, or be stored as `{}`. It is refused, and its own rejection does not end the process. */
export function checkAnswer<T>(answer: T, { what, so, optional = false, advice }: AnswerRules): T {
  const isPromise = isThenable(answer)
  if (!isPromise && (answer !== undefined || optional)) return answer
  if (isPromise) Promise.resolve(answer).catch(() => {})
  const [given, mend] = isPromise
    ? ['a promise', 'Make the function synchronous.']
    : ['undefined', 'Return a value from every branch.']
  throw new AftercommitError('BAD_ANSWER', `${what} returned ${given}, so ${so}. ${advice ?? mend}`)
}
