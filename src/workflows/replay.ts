/** From a history to a state: lift each event to the version of today, then let `evolve` have it. Pure. */
import { type EventDefinitions, type StandardSchema, Undecodable, upcast } from '../events/index.ts'
import { deepFreeze } from './freeze.ts'
import { localType } from './names.ts'
import type { Found, HistoryEvent, InstanceRef } from './store.ts'
import type { Workflow } from './workflow.ts'
import { historyLost, UndecodableEventError } from './workflow-error.ts'

/** A state and the version it belongs to. */
export interface Current<State = unknown> {
  readonly state: State
  readonly version: number
}

/** What is known, or the snapshot, or nothing, and everything that happened since. */
export function replayFound<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  known: Current<S> | undefined,
  { snapshot, events }: Pick<Found, 'snapshot' | 'events'>,
): Current<S> {
  const base = snapshot ? fromSnapshot(workflow, snapshot) : known
  return replay(workflow, instance, base ?? { state: deepFreeze(workflow.initial()), version: 0 }, events)
}

function replay<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  from: Current<S>,
  events: readonly HistoryEvent[],
): Current<S> {
  let { state, version } = from
  for (const event of events) {
    if (event.version !== version + 1) throw historyLost(instance, version + 1)
    state = applyStored(workflow, instance, state, event)
    version = event.version
  }
  return { state, version }
}

/** The event as the code of today knows it. Throws when it cannot be read, or was written by newer code. */
export function liftPayload<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { id, type, payload, schemaVersion }: Omit<HistoryEvent, 'version' | 'position'>,
): E {
  if (payload instanceof Undecodable) throw new TypeError(payload.reason)
  if (workflow.events === undefined) return payload as E
  return upcast(definitionsOf(workflow, workflow.events), { id, type, payload, schemaVersion }).payload as E
}

function applyStored<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  state: S,
  event: HistoryEvent,
): S {
  try {
    return deepFreeze(workflow.evolve(state, liftPayload(workflow, event)))
  } catch (error) {
    // Not a fault of the event: this process is the older one.
    if ((error as { code?: string } | null)?.code === 'SCHEMA_VERSION_TOO_NEW') throw error
    throw new UndecodableEventError(instance, event, error)
  }
}

function fromSnapshot<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { version, state }: NonNullable<Found['snapshot']>,
): Current<S> {
  if (state === undefined) return { state: deepFreeze(workflow.initial()), version }
  const { decode } = workflow.snapshots ?? {}
  return { state: deepFreeze(decode ? decode(state.json) : (state.json as S)), version }
}

type Versions = NonNullable<Workflow['events']>

/** The versions of a workflow's events in the words of the catalogue. Made once per workflow. */
function definitionsOf(workflow: { readonly type: string }, versions: Versions): EventDefinitions {
  const known = definitions.get(versions)
  if (known) return known
  const currentFor = (type: string) => {
    const name = localType(workflow.type, type)
    if (!Object.hasOwn(versions, name)) return undefined
    const { version, upcast: steps } = versions[name]!
    const bySource = new Map(Object.entries(steps).map(([from, step]) => [Number(from), step]))
    return { name: type, schema: ANYTHING, version, steps: bySource }
  }
  const made: EventDefinitions = { schemas: {}, names: [], streams: [], get: currentFor, currentFor }
  definitions.set(versions, made)
  return made
}

const definitions = new WeakMap<object, EventDefinitions>()

const ANYTHING: StandardSchema = {
  '~standard': { version: 1, vendor: 'aftercommit', validate: (value) => ({ value }) },
}
