/**
 * How much work one evaluation may do, in comparisons of two small values or so. Evaluation is synchronous, so one
 * counter serves them all; running out is thrown rather than returned, because `||` must not absorb it.
 */
export function startBudget(steps: number = STEPS): void {
  left = steps
}

export function spend(steps: number): void {
  left -= steps
  if (left < 0) throw new BudgetSpent()
}

export class BudgetSpent extends Error {}

/** About a tenth of a second on a slow machine. */
const STEPS = 5_000_000
let left = STEPS
