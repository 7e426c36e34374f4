/** Every observer that this process has or that is in force in the database, and how it fares. */
import { countOpenByOwner } from '../dead-letters/index.ts'
import type { Deliveries, DeliveryPause } from '../delivery/index.ts'
import type { Database } from '../postgres/index.ts'
import type { ObserverConfig } from './config/index.ts'
import type { Rule } from './explain-rule.ts'
import { type ObserverVersion, selectVersionsAt } from './registry-statements.ts'
import { type RunCounts, selectRunSummaries } from './status-statements.ts'

export interface ObserverStatus {
  readonly name: string
  /** The file or the program of this process, or only the database: some other process has it. */
  readonly source: 'file' | 'program' | 'elsewhere'
  /** Whether some process has put it in force, and nobody has taken it back since. */
  readonly isInForce: boolean
  readonly enabled: boolean
  readonly on: readonly string[]
  readonly entity: string | null
  readonly condition: string | null
  readonly actions: readonly ActionStatus[]
  /** Of the last 24 hours; successes only where they are recorded. */
  readonly runs: RunCounts
  readonly lastRunAt: Date | null
}

export interface ActionStatus {
  readonly name: string
  readonly type: string
  /** Who paused it and why: a person, or a receiver that said it is gone for good. */
  readonly pause: DeliveryPause | null
  /** Dead letters that wait for somebody. */
  readonly dead: number
}

export interface StatusParts {
  readonly database: Database
  readonly deliveries: Pick<Deliveries, 'pauses'>
  readonly configs: readonly ObserverConfig[]
  /** Whether the program added it, rather than the file. */
  readonly isProgram: (name: string) => boolean
}

const LATEST = 2n ** 63n - 1n
const NO_RUNS: RunCounts = { success: 0, partial: 0, failure: 0 }

/** In the order of the configuration, then by name. */
export async function readObserverStatus({
  database,
  deliveries,
  configs,
  isProgram,
}: StatusParts): Promise<ObserverStatus[]> {
  const [versions, summaries, dead, pauses] = await Promise.all([
    selectVersionsAt(database, LATEST),
    selectRunSummaries(database),
    countOpenByOwner(database, 'action'),
    deliveries.pauses(),
  ])
  const inForce = new Set(versions.map(({ observer }) => observer))
  const here = new Set(configs.map(({ name }) => name))
  const known = [
    ...configs.map((config) => ({
      name: config.name,
      enabled: config.enabled,
      rule: config as Rule,
      source: isProgram(config.name) ? ('program' as const) : ('file' as const),
    })),
    ...versions.filter(({ observer }) => !here.has(observer)).map(toElsewhere),
  ]
  return known.map(({ name, enabled, source, rule: { on, entity, condition, actions } }) => ({
    name,
    source,
    isInForce: inForce.has(name),
    enabled,
    on,
    entity,
    condition,
    actions: actions.map((action) => {
      const owner = `${name}/${action.name}`
      const pause = pauses.find((one) => one.kind === 'action' && one.name === owner) ?? null
      return { name: action.name, type: action.type, pause, dead: dead.get(owner) ?? 0 }
    }),
    runs: summaries.get(name)?.runs ?? NO_RUNS,
    lastRunAt: summaries.get(name)?.lastRunAt ?? null,
  }))
}

function toElsewhere({ observer, definition }: ObserverVersion) {
  return { name: observer, enabled: true, rule: definition as Rule, source: 'elsewhere' as const }
}
