/** What a check compares a replay with. */
import { parseJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { InstanceRef } from './store.ts'

export interface StoredSnapshot {
  readonly version: number
  readonly position: bigint
  readonly stateVersion: number
  /** Undefined: a new life begins after this version. */
  readonly state: unknown
}

/** Oldest first. */
export async function selectSnapshots(db: Queryable, { type, id }: InstanceRef): Promise<StoredSnapshot[]> {
  const { rows } = await db.query<SnapshotRow>(
    `select version::text as version, position::text as position, state_version as made, state::text as state
       from ${db.schema}.workflow_snapshots
      where type = $1::text and id = $2::text
      order by version`,
    [type, id],
  )
  return rows.map(({ version, position, made, state }) => ({
    version: Number(version),
    position: BigInt(position),
    stateVersion: Number(made),
    state: state === null ? undefined : parseJson(state, DEEP),
  }))
}

interface SnapshotRow {
  version: string
  position: string
  made: number
  state: string | null
}

export interface StoredObservation {
  readonly inputType: string | null
  readonly inputId: string | null
  readonly input: unknown
  readonly redacted: boolean
  readonly outcome: 'accepted' | 'rejected' | 'already_completed'
  readonly rejection: unknown
  /** The version it was decided on. */
  readonly version: number
  readonly events: number
  readonly decidedAt: Date
}

/** Oldest first; as many as there are of one instance. */
export async function selectObservations(db: Queryable, { type, id }: InstanceRef): Promise<StoredObservation[]> {
  const { rows } = await db.query<ObservationRow>(
    `select input_type as type, input_id as id, input::text as input, redacted, outcome, rejection::text as rejection,
            version::text as version, events, (extract(epoch from decided_at) * 1000)::float8 as decided
       from ${db.schema}.input_observations
      where type = $1::text and id = $2::text
      order by number`,
    [type, id],
  )
  return rows.map((row) => ({
    inputType: row.type,
    inputId: row.id,
    input: parseJson(row.input, DEEP),
    redacted: row.redacted,
    outcome: row.outcome,
    rejection: row.rejection === null ? undefined : parseJson(row.rejection, DEEP),
    version: Number(row.version),
    events: Number(row.events),
    decidedAt: new Date(Math.round(Number(row.decided))),
  }))
}

interface ObservationRow {
  type: string | null
  id: string | null
  input: string
  redacted: boolean
  outcome: StoredObservation['outcome']
  rejection: string | null
  version: string
  events: number
  decided: number | string
}

const DEEP = { maxDepth: 1_010 }
