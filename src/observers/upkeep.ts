/**
 * What has to be looked after while observers run: days of run records are made and dropped, and a backlog is told of.
 * Any number of processes may do it.
 *
 *   below the threshold ──more events wait──▶ above: one WARN, one alert ──fewer wait──▶ below
 *
 * Nothing is dropped for a backlog: the log keeps what was not read. Only the process that reads speaks up, or any when
 * nobody does.
 */
import type { Database } from '../postgres/index.ts'
import { type Clock, createLoop, type Logger, type Registry, type Service } from '../runtime/index.ts'
import { keepRunDays } from './upkeep-statements.ts'

export interface Backlog {
  /** Events that are not finished: unread, under way, or with actions that wait. */
  readonly lag: bigint
  /** The process that reads; null when nobody does. */
  readonly owner: string | null
}

export interface UpkeepParts {
  readonly database: Database
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  /** This one. */
  readonly process: string
  /** Undefined before anybody was ever in force. */
  readonly backlog: () => Promise<Backlog | undefined>
  readonly threshold: () => number
  readonly alert: (text: string) => Promise<void>
}

const LOOK_MS = 10_000
const KEEP_MS = 3_600_000
const KEEP_DAYS = 7

/** Without a part in health: a day that is made an hour late harms nobody. */
export function createUpkeep(parts: UpkeepParts): Service {
  const { database, clock, logger, metrics } = parts
  metrics
    .gauge({
      name: 'aftercommit_backlog',
      help: 'Events that observers have not finished: unread, under way, or with actions that wait.',
    })
    .collect(async () => [{ labels: {}, value: Number((await parts.backlog())?.lag ?? 0) }])
  let keepDueMs = 0
  let isAbove = false

  async function keepDays(): Promise<void> {
    if (clock.monotonic() < keepDueMs) return
    const done = await keepRunDays(database, KEEP_DAYS)
    keepDueMs = clock.monotonic() + KEEP_MS * (0.75 + Math.random() / 2)
    if (done.length > 0) logger.debug({ days: done }, 'days of run records kept up')
  }

  async function lookAtBacklog(): Promise<void> {
    const found = await parts.backlog()
    if (found === undefined || (found.owner !== null && found.owner !== parts.process)) return
    const threshold = parts.threshold()
    const crossing = decideCrossing(isAbove, found.lag, threshold)
    if (crossing === 'none') return
    isAbove = crossing === 'up'
    const fields = { events: String(found.lag), threshold }
    if (!isAbove) return logger.info(fields, 'backlog of observers is below its threshold again')
    logger.warn(fields, 'backlog of observers')
    await parts.alert(
      `${found.lag} events are not finished by observers, more than ${threshold}. None of them is lost.`,
    )
  }

  return createLoop({
    name: 'observer upkeep',
    clock,
    logger,
    metrics,
    async run({ wait }) {
      for (;;) {
        await keepDays()
        await lookAtBacklog()
        await wait(LOOK_MS)
      }
    },
  })
}

/** Whether this look is the first above the threshold, or the first at or below it again. */
export function decideCrossing(isAbove: boolean, lag: bigint, threshold: number): 'up' | 'down' | 'none' {
  const isNow = Number(lag) > threshold
  return isNow === isAbove ? 'none' : isNow ? 'up' : 'down'
}
