/** A projection as users write it, and the subscription that it is. */
import { AftercommitError } from '../errors.ts'
import type { AftercommitEvent } from '../events/index.ts'
import type { AnyEvent, StartPoint } from '../log/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { Duration, RetryOptions } from '../runtime/index.ts'
import { assertOpenId, type HandlerContext, toDefinition } from '../subscriptions/index.ts'
import { type Fold, foldEvents } from './fold.ts'
import { selectStatesOf, writeStates } from './statements.ts'

export interface ProjectionOptions<Event extends AftercommitEvent = AnyEvent, State = unknown> {
  /** Stable over releases: states and checkpoint are kept under it. */
  readonly id: string
  /** Patterns of types; every event unless told. */
  readonly on?: readonly string[] | undefined
  readonly tenant?: string | undefined
  /** Which state an event belongs to; `event.key`, that is the aggregate, unless told. */
  readonly key?: ((event: Event) => string) | undefined
  /** The next state, null for none. Pure: called again with the same arguments it gives the same answer. */
  readonly apply: (state: State | null, event: Event) => State | null
  readonly from?: StartPoint | undefined
  readonly batchSize?: number | undefined
  readonly retry?: RetryOptions | undefined
  readonly onFailure?: 'park' | 'skip' | 'stop' | undefined
  readonly after?: readonly string[] | undefined
  readonly timeout?: Duration | undefined
}

export function toProjection({ apply, ...options }: ProjectionOptions) {
  if (typeof apply !== 'function') {
    throw new AftercommitError(
      'BAD_OPTION',
      `Projection "${options.id}" needs an \`apply\` function, so it was not registered.`,
    )
  }
  const definition = toDefinition(
    {
      ...assertOpenId(options),
      transactional: true,
      handleBatch: (events, { tx }: HandlerContext) => project(fold, events, tx as Queryable),
    },
    { kind: 'projection' },
  )
  const fold: Fold = { projection: definition.id, keyOf: definition.keyOf, apply }
  return definition
}

/** Three round trips, whatever the size of the batch: read, write, and the checkpoint that the runner adds. */
async function project(fold: Fold, events: readonly AnyEvent[], tx: Queryable): Promise<void> {
  const ids = new Set(events.map(fold.keyOf))
  const stored = await selectStatesOf(tx, fold.projection, [...ids])
  await writeStates(tx, fold.projection, foldEvents(fold, stored, events))
}
