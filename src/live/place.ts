/** Whether a client may go on where it stood. Pure. */
import type { ResumeToken } from './feed.ts'

export interface LogFacts {
  readonly epoch: number
  /** The oldest position that is kept. */
  readonly keptFrom: bigint
  /** The highest position ever given out; some of those below may have been rolled back. */
  readonly last: bigint
  /** Up to here the epochs after that of the place tell the same history; undefined when there are none. */
  readonly shared: bigint | undefined
}

export function isLost({ epoch, position }: ResumeToken, facts: LogFacts): boolean {
  // From a history that this database knows nothing of.
  if (epoch > facts.epoch) return true
  if (facts.shared !== undefined && position > facts.shared) return true
  return position > facts.last || position + 1n < facts.keptFrom
}
