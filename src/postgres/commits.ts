/**
 * Counts what this process has committed: evidence that the server and the path to it are well, for the decision whether
 * a failure is the fault of an event.
 */
export interface Commits {
  /** Transactions of the application, checkpoints and settled deliveries. Grows only. */
  work: number
  /** Every call that a pool answered without an error, leases and heartbeats included. Grows only. */
  answered: number
}

/** - `housekeeping`: only leases, heartbeats and reads went through */
export type Committed = 'nothing' | 'housekeeping' | 'work'

export function createCommits(): Commits {
  return { work: 0, answered: 0 }
}

/** The kind of commits between two copies of the counts. */
export function committedBetween(from: Readonly<Commits>, to: Readonly<Commits>): Committed {
  if (to.work > from.work) return 'work'
  return to.answered > from.answered ? 'housekeeping' : 'nothing'
}
