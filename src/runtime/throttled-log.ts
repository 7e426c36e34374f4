import type { Clock } from './clock.ts'
import type { Logger, LogLevel } from './logger.ts'

/**
 * For failures that repeat. The first of a kind is logged at once; after that one line a minute at most, with
 * `repeated` = how many lines it stands for besides itself. A database that is down for an hour is 60 lines, not a
 * full disk.
 */
export type ThrottledLog = (level: LogLevel, key: string, fields: object, message: string) => void

export interface ThrottledLogOptions {
  logger: Logger
  clock: Clock
  everyMs?: number
}

export function createThrottledLog({ logger, clock, everyMs = 60_000 }: ThrottledLogOptions): ThrottledLog {
  const kinds = new Map<string, { loggedAt: number; repeated: number }>()

  return (level, key, fields, message) => {
    const kind = kinds.get(key)
    const now = clock.monotonic()
    if (kind && now - kind.loggedAt < everyMs) {
      kind.repeated++
      return
    }
    // Taken out and put back, so that the map is ordered by last line and the first kind is the stalest.
    kinds.delete(key)
    kinds.set(key, { loggedAt: now, repeated: 0 })
    if (kinds.size > MOST_KINDS) kinds.delete(kinds.keys().next().value!)
    logger[level](kind && kind.repeated > 0 ? { ...fields, repeated: kind.repeated } : fields, message)
  }
}

// Keys may be built from error codes of other systems; the memory for them is bounded all the same.
const MOST_KINDS = 500
