/**
 * Rules over real history: what they would have done with the events that were, had they been in force. Nothing is sent
 * and nothing is written. Events are read page by page from the log, so a backtest of millions takes time, not memory.
 */
import { AftercommitError } from '../errors.ts'
import { closest } from '../events/index.ts'
import { type AnyEvent, type Log, type StartPoint, settledPosition } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Duration } from '../runtime/index.ts'
import { type BacktestObserver, createTally, type Tally } from './backtest-tally.ts'
import type { ObserverConfig } from './config/index.ts'
import { patternsOf, toTime } from './history.ts'
import { createMatching } from './matching.ts'

export interface BacktestOptions {
  /** Events recorded since this time, or for so long. */
  readonly since: Date | Duration
  /** Only events recorded before it. */
  readonly until?: Date | undefined
  /** Names; those that are enabled unless told. One that is named is tried even if it is not. */
  readonly observers?: readonly string[] | undefined
  /** How many examples of each observer are shown; 3 unless told. */
  readonly samples?: number | undefined
  /** At most so many events; all unless told. */
  readonly limit?: number | undefined
  readonly onProgress?: ((done: bigint, of: bigint) => void) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface BacktestReport {
  /** No condition, no template and no event failed. */
  readonly ok: boolean
  readonly since: Date
  readonly until: Date | null
  /** Events of types that some observer is about. */
  readonly events: number
  /** False when `limit` or the signal ended it before the end. */
  readonly isComplete: boolean
  readonly observers: readonly BacktestObserver[]
}

export interface BacktestParts {
  readonly database: Database
  readonly log: Pick<Log, 'read'>
  readonly configs: readonly ObserverConfig[]
  readonly env: Readonly<Record<string, string>>
}

const PAGE = 500
const MOST_SAMPLES = 100

export async function runBacktest(
  { since: given, until, observers, samples = 3, limit, onProgress, signal }: BacktestOptions,
  { database, log, configs, env }: BacktestParts,
): Promise<BacktestReport> {
  const since = toTime(given, database.clock.now(), 'nothing was tried')
  if (!Number.isSafeInteger(samples) || samples < 0 || samples > MOST_SAMPLES) {
    throw new AftercommitError('BAD_OPTION', `samples must be a whole number from 0 to ${MOST_SAMPLES}.`)
  }
  const tallies = choose(configs, observers).map((config) => createTally(config, { samples, env }))
  const matching = createMatching(tallies.map((tally) => ({ on: tally.config.on, entity: tally.config.entity, tally })))
  let events = 0
  let isComplete = true
  const isOver = () => signal?.aborted === true || (limit !== undefined && events >= limit)

  for await (const page of pagesOf(log, since, until, tallies, await settledPosition(database), onProgress)) {
    for (const event of page) {
      if (isOver()) {
        isComplete = false
        break
      }
      events++
      for (const { tally } of matching.find(event)) tally.add(event)
    }
    if (!isComplete) break
  }
  const results = tallies.map((tally) => tally.result())
  const ok = results.every(
    ({ conditionErrors, actions }) => conditionErrors === 0 && actions.every(({ errors }) => errors === 0),
  )
  return { ok, since, until: until ?? null, events, isComplete, observers: results }
}

/** Everything between the two times that is final now. Times are nearly in the order of positions, and not quite. */
async function* pagesOf(
  log: Pick<Log, 'read'>,
  since: Date,
  until: Date | undefined,
  tallies: readonly Tally[],
  head: bigint,
  onProgress: BacktestOptions['onProgress'],
): AsyncGenerator<AnyEvent[], void, void> {
  const on = patternsOf(tallies.map(({ config }) => config))
  if (on?.length === 0) return
  let from: StartPoint = since
  let first: bigint | undefined
  for (;;) {
    const page: AnyEvent[] = await log.read({ from, on, limit: PAGE })
    const last = page.at(-1)
    if (last === undefined) break
    first ??= page[0]!.position - 1n
    const wanted = page.filter(
      ({ position, recordedAt }) =>
        position <= head && recordedAt >= since && (until === undefined || recordedAt < until),
    )
    yield wanted
    onProgress?.(last.position - first, head > last.position ? head - first : last.position - first)
    const isBeyond = last.position >= head || (until !== undefined && page.every((one) => one.recordedAt >= until))
    if (page.length < PAGE || isBeyond) break
    from = last.position
  }
}

function choose(configs: readonly ObserverConfig[], names: readonly string[] | undefined): readonly ObserverConfig[] {
  if (names === undefined) return configs.filter(({ enabled }) => enabled)
  const known = new Map(configs.map((config) => [config.name, config]))
  return names.map((name) => known.get(name) ?? unknown(name, known.keys()))
}

function unknown(name: string, names: Iterable<string>): never {
  const near = closest(name, names)
  throw new AftercommitError(
    'BAD_OPTION',
    `There is no observer ${JSON.stringify(name)} in the configuration, so nothing was tried.${near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`}`,
  )
}
