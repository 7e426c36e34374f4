/** What is kept of an instance in memory, and what one step makes of it. Pure: a step gives a new value. */
import { parseJson, type StoredFields } from '../events/index.ts'
import type { StepWrite } from '../workflows/index.ts'

export interface Kept {
  readonly type: string
  readonly id: string
  /** 0 while nothing was accepted: then only `inputs` may hold something. */
  readonly version: number
  readonly position: bigint
  readonly generation: number
  readonly uniqueKey: string | null
  readonly paused: boolean
  readonly createdAt: Date
  readonly lastEventAt: Date
  readonly completedAt: Date | null
  /** Event n is at n - 1. */
  readonly events: readonly KeptEvent[]
  /** Oldest first. One without a state is where a life began. */
  readonly snapshots: readonly KeptSnapshot[]
  /** Input id → outcome, as JSON. */
  readonly inputs: ReadonlyMap<string, string>
}

/** As the log would have it; the payload is JSON. */
export type KeptEvent = StoredFields & { readonly version: number }

export interface KeptSnapshot {
  readonly version: number
  readonly state: { readonly json: string; readonly version: number } | undefined
}

export const NOTHING_KEPT: Kept = {
  type: '',
  id: '',
  version: 0,
  position: 0n,
  generation: 1,
  uniqueKey: null,
  paused: false,
  createdAt: new Date(0),
  lastEventAt: new Date(0),
  completedAt: null,
  events: [],
  snapshots: [],
  inputs: new Map(),
}

/** `positions`: one for each event. */
export function writeStep(before: Kept, write: StepWrite, positions: readonly bigint[], now: Date): Kept {
  const inputs = write.recorded
    ? new Map([[write.recorded.inputId, write.recorded.outcome], ...before.inputs])
    : before.inputs
  if (write.events.length === 0) return { ...before, inputs }
  const version = before.version + write.events.length
  return {
    ...before,
    inputs,
    version,
    position: positions.at(-1)!,
    generation: before.generation + (write.continuesAfter === undefined ? 0 : 1),
    uniqueKey: write.completed ? null : (write.uniqueKey ?? before.uniqueKey),
    createdAt: before.version === 0 ? now : before.createdAt,
    lastEventAt: now,
    completedAt: write.completed ? now : null,
    events: before.events.concat(toKept(before, write, positions, now)),
    snapshots: snapshotsAfter(before, write, version),
  }
}

function toKept(
  { type: aggregateType, id: aggregateId, version }: Kept,
  { events, tenant }: StepWrite,
  positions: readonly bigint[],
  now: Date,
): KeptEvent[] {
  return events.map((event, n) => ({
    ...event,
    aggregateType,
    aggregateId,
    version: version + n + 1,
    position: positions[n]!,
    tenant: tenant ?? null,
    changes: null,
    previous: null,
    occurredAt: now,
    recordedAt: now,
  }))
}

export function schemaVersionOf({ metadata }: Pick<KeptEvent, 'metadata'>): number {
  return (parseJson(metadata as string) as { schema_version?: number }).schema_version ?? 1
}

function snapshotsAfter(before: Kept, { continuesAfter, snapshot }: StepWrite, version: number): KeptSnapshot[] {
  const snapshots = [...before.snapshots]
  if (continuesAfter !== undefined) snapshots.push({ version: before.version + continuesAfter, state: undefined })
  if (snapshot === undefined) return snapshots
  snapshots.push({ version, state: { json: snapshot.state, version: snapshot.version } })
  if (snapshot.keep === 'all') return snapshots
  const oldest = snapshots.filter(({ state }) => state).at(-snapshot.keep)!.version
  return snapshots.filter((one) => one.state === undefined || one.version >= oldest)
}
