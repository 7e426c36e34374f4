/**
 * How much one evaluation may do and build: steps of about 20 ns, and characters and items that it puts together.
 * Evaluation is synchronous, so one counter serves all; running out is thrown rather than returned, because `||` must not
 * absorb it. Outside of an evaluation nothing is counted: a source that is compiled is bounded by its length.
 */
export function startBudget(): void {
  stepsLeft = STEPS
  roomLeft = ROOM
}

export function endBudget(): void {
  stepsLeft = Number.POSITIVE_INFINITY
  roomLeft = Number.POSITIVE_INFINITY
}

export function spend(steps: number): void {
  stepsLeft -= steps
  if (stepsLeft < 0) throw new BudgetSpent('it takes too many steps for this event')
}

/** Before text of so many characters, or a list of so many items, is built: copying is paid for too. */
export function build(size: number): void {
  spend(1 + (size >> 4))
  roomLeft -= size
  if (roomLeft < 0) throw new BudgetSpent('it builds too much text for this event')
}

/** Two texts of this length are compared, or one is read, by the machine's fastest means. */
export function spendOnText(length: number): void {
  if (length > 64) spend(length >> 6)
}

export class BudgetSpent extends Error {}

/** About a tenth of a second on a slow machine. */
const STEPS = 5_000_000
/** Eight texts of the longest kind. */
const ROOM = 8_000_000
let stepsLeft = Number.POSITIVE_INFINITY
let roomLeft = Number.POSITIVE_INFINITY
