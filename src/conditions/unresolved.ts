/**
 * What an operator or function gives when it cannot give a value. It travels up like a value, so that `&&` and `||`
 * can absorb it the way CEL asks for and nothing is thrown for the ordinary case of a field that is not there.
 */
export class Unresolved {
  readonly start: number
  readonly end: number
  /** The source of the operand that was absent or null; undefined when something else is wrong. */
  readonly absent: string | undefined
  readonly problem: string

  constructor(at: { readonly start: number; readonly end: number }, problem: string, absent?: string) {
    this.start = at.start
    this.end = at.end
    this.problem = problem
    this.absent = absent
  }
}
