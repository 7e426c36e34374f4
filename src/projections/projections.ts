/** Registering projections, reading their states, and folding them anew. */
import { AftercommitError } from '../errors.ts'
import { type Database, recordAudit, withRetry } from '../postgres/index.ts'
import { type OperatorAction, type SubscriptionHandle, type SubscriptionsPart, seekTo } from '../subscriptions/index.ts'
import { type ProjectionOptions, toProjection } from './projection.ts'
import { clearProjection, selectKeptFrom, selectPage, selectStatesOf } from './statements.ts'

export interface ProjectionState<State = unknown> {
  readonly id: string
  readonly state: State
  /** Of the last event that was folded into it. */
  readonly position: bigint
}

export interface Projections {
  /** The state kept under an id; null when there is none. */
  get<State = unknown>(projection: string, id: string): Promise<State | null>
  /** By id, 100 unless told. `after` is the id of the last one of the page before. */
  list<State = unknown>(
    projection: string,
    options?: { limit?: number; after?: string },
  ): Promise<ProjectionState<State>[]>
  /** Deletes all states and folds the log from its beginning. Readers see them grow; refused when events were dropped. */
  reset(projection: string, action?: OperatorAction): Promise<void>
}

export interface ProjectionHandle<State = unknown> extends SubscriptionHandle {
  get(id: string): Promise<State | null>
  list(options?: { limit?: number; after?: string }): Promise<ProjectionState<State>[]>
  reset(action?: OperatorAction): Promise<void>
}

export interface ProjectionsPart extends Projections {
  register(options: ProjectionOptions): ProjectionHandle
}

export function createProjections(
  database: Database,
  subscriptions: Pick<SubscriptionsPart, 'register' | 'nudgeAll'>,
): ProjectionsPart {
  const projections: Projections = {
    async get<State>(projection: string, id: string) {
      return ((await selectStatesOf(database, projection, [id])).get(id) ?? null) as State | null
    },
    async list<State>(projection: string, { limit = 100, after }: { limit?: number; after?: string } = {}) {
      return (await selectPage(database, projection, after ?? null, checkLimit(limit))) as ProjectionState<State>[]
    },
    async reset(projection, { who = 'unknown', reason } = {}) {
      await withRetry(() =>
        database.transaction(async (tx) => {
          if ((await selectKeptFrom(tx)) > 1n) throw historyLost(projection)
          // The new term comes first: whoever runs it now can no longer commit a state that would be folded in twice.
          if (!(await seekTo(tx, projection, 0n))) throw unknownProjection(projection)
          const states = await clearProjection(tx, projection)
          const entry = { who, what: 'projection.reset', target: projection, before: { states } }
          await recordAudit(tx, { ...entry, ...(reason === undefined ? {} : { reason }) })
        }),
      )
      await subscriptions.nudgeAll()
    },
  }
  return {
    ...projections,
    register(options) {
      const handle = subscriptions.register(toProjection(options))
      return {
        ...handle,
        get: (id) => projections.get(handle.id, id),
        list: (page) => projections.list(handle.id, page),
        reset: (action) => projections.reset(handle.id, action),
      }
    },
  }
}

function checkLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= 1_000) return limit
  throw new AftercommitError(
    'BAD_OPTION',
    'limit must be a whole number from 1 to 1000. Use `after` for the next page.',
  )
}

function unknownProjection(projection: string): AftercommitError {
  return new AftercommitError(
    'UNKNOWN_SUBSCRIPTION',
    `There is no projection "${projection}" in the database, so nothing was reset.`,
  )
}

function historyLost(projection: string): AftercommitError {
  return new AftercommitError(
    'HISTORY_LOST',
    `Retention has dropped events, so projection "${projection}" cannot be folded from the beginning and was left as it is. ` +
      'Register it under a new id and choose where it begins.',
  )
}
