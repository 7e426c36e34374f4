/** Loading an instance and writing one step: the two statements that every input takes. */
import { parseJson } from '../events/index.ts'
import { type Queryable, SCHEMA_LEVEL, type Statement } from '../postgres/index.ts'
import type {
  EndedDelivery,
  Found,
  HistoryEvent,
  InstanceRef,
  RecordedOutcome,
  StepRequest,
  StepWrite,
  Written,
} from './store.ts'

/** A process that was put to sleep in the middle of a step must not keep its instance for ever. */
const LONGEST_STEP = '60s'

export interface LoadRequest extends Pick<StepRequest, 'instance' | 'known' | 'snapshotVersion' | 'inputId'> {
  readonly lock: boolean
  /** The transaction is ours, and consists of this step. */
  readonly own?: boolean | undefined
  readonly upTo?: number | undefined
}

/** With `lock`, the instance belongs to the transaction until it ends. */
export async function loadInstance(db: Queryable, request: LoadRequest): Promise<Found> {
  const { text, values } = loadStatement(db, request)
  const { rows } = await db.query<{ answer: string }>(text, values)
  return toFoundOne(rows[0]!)
}

export function loadStatement({ schema, sendsUntyped = false }: SqlDialect, request: LoadRequest): Statement {
  const { instance, snapshotVersion, inputId, lock, upTo, own } = request
  const { version = 0, position = 0n } = request.known() ?? {}
  const limit = own
    ? `, pg_catalog.set_config('idle_in_transaction_session_timeout', '${LONGEST_STEP}', true) as longest`
    : ''
  return {
    text: sendsUntyped
      ? `select ${schema}.workflow_load($1, $2, $3, $4, $5, $6, $7, $8) as answer${limit}`
      : `select ${schema}.workflow_load($1::text, $2::text, $3::boolean, ($4::text)::bigint, ($5::text)::bigint,
           ($6::text)::integer, $7::text, ($8::text)::bigint) as answer`,
    values: [
      instance.type,
      instance.id,
      lock,
      String(version),
      String(position),
      String(snapshotVersion),
      inputId ?? null,
      upTo === undefined ? null : String(upTo),
    ],
  }
}

type SqlDialect = Pick<Queryable, 'schema' | 'sendsUntyped'>

/** Of several instances, each locked if nobody else has it: what is not ours is not loaded. */
export function loadManyStatement({ schema }: SqlDialect, requests: readonly StepRequest[]): Statement {
  const wanted = requests.map(({ instance, known, snapshotVersion, inputId = null }) => {
    const { version = 0, position = 0n } = known() ?? {}
    return [instance.type, instance.id, version, String(position), snapshotVersion, inputId]
  })
  return {
    text: `select ${schema}.workflow_load_many(($1::text)::jsonb) as answer,
             pg_catalog.set_config('idle_in_transaction_session_timeout', '${LONGEST_STEP}', true) as longest`,
    values: [JSON.stringify(wanted)],
  }
}

export function toFoundMany(answer: string): (Found | undefined)[] {
  return (parseJson(answer, DEEP) as (Loaded | null)[]).map((loaded) => (loaded ? toFound(loaded) : undefined))
}

/** What workflow_load answers. */
type Loaded = [
  version: string,
  generation: number,
  completed: boolean,
  paused: boolean,
  uniqueKey: string | null,
  clockMs: number,
  position: string,
  outcome: RecordedOutcome | null,
  snapshotVersion: number | null,
  /** In a list, so that a state may be null; without one a new life begins. */
  state: [unknown] | null,
  events: EventTuple[] | null,
  followsKnown: boolean,
  holds: boolean,
]

export function toFoundOne({ answer }: { answer: string }): Found {
  return toFound(parseJson(answer, DEEP) as Loaded)
}

function toFound(loaded: Loaded): Found {
  const [version, generation, completed, paused, uniqueKey, clockMs, position, outcome, base, state, ...rest] = loaded
  const [events, followsKnown, holds] = rest
  return {
    now: new Date(clockMs),
    version: Number(version),
    position: BigInt(position),
    generation,
    completed,
    paused,
    holds,
    uniqueKey,
    snapshot: base === null ? undefined : { version: base, state: state === null ? undefined : { json: state[0] } },
    events: events === null ? [] : events.map(toHistoryEvent),
    followsKnown,
    recorded: outcome ?? undefined,
  }
}

const DEEP = { maxDepth: 1_020 }

type EventTuple = [
  version: number,
  position: number | bigint,
  id: string,
  type: string,
  schema: number,
  payload: unknown,
]

function toHistoryEvent([version, position, id, type, schemaVersion, payload]: EventTuple): HistoryEvent {
  return { version, position: BigInt(position), id, type, schemaVersion, payload }
}

export interface LaneNumbers {
  /** Of timers of this workflow. */
  readonly timers: number
  /** Of each effect, in order. */
  readonly effects: readonly number[]
}

export interface CommitRequest {
  readonly instance: InstanceRef
  readonly found: Pick<Found, 'version' | 'uniqueKey' | 'now'>
  readonly write: StepWrite
  readonly lanes: LaneNumbers
  /** A unique key that is taken fails the transaction. */
  readonly strict: boolean
  /** Effects that are still to be done go with the end of the instance. */
  readonly endsEffects: boolean
  /** The delivery that brought the input, to be deleted by its token. */
  readonly done: EndedDelivery['claim'] | undefined
  /** Its effects come as claimed by this worker. */
  readonly claim: { readonly worker: string; readonly token: bigint } | undefined
}

export type Committed = Written & { readonly claimed?: readonly { segment: number; id: bigint }[] }

export async function commitStep(db: Queryable, request: CommitRequest): Promise<Committed> {
  const { text, values } = commitStatement(db, [request])
  const { rows } = await db.query<{ answer: string }>(text, values)
  return toCommitted(rows[0]!).steps[0]!
}

/** Steps of one or several instances, with deliveries that ended: all of it is written, or nothing. */
export function commitStatement(
  { schema, sendsUntyped = false }: SqlDialect,
  requests: readonly CommitRequest[],
  ended: readonly EndedDelivery['claim'][] = [],
): Statement {
  const steps = requests.map((request) => {
    const { instance, found } = request
    return `[${JSON.stringify(instance.type)},${JSON.stringify(instance.id)},${found.version},${toJson(request)}]`
  })
  return {
    text: sendsUntyped
      ? `select ${schema}.workflow_commit($1, $2, ${SCHEMA_LEVEL}) as answer`
      : `select ${schema}.workflow_commit(($1::text)::jsonb, ($2::text)::jsonb, ${SCHEMA_LEVEL}) as answer`,
    values: [list(steps), list(ended.map(claimJson))],
  }
}

export function toCommitted({ answer }: { answer: string }): { steps: Committed[]; deleted: Set<bigint> } {
  if (answer.startsWith('taken:')) return { steps: [{ takenBy: answer.slice('taken:'.length) }], deleted: new Set() }
  const [deleted = '', ...steps] = answer.split('\n')
  return { steps: steps.map(toStep), deleted: new Set(deleted === '' ? [] : deleted.split(',').map(BigInt)) }
}

function toStep(line: string): Committed {
  const [position = '', claimed] = line.split('|')
  return { position: BigInt(position), ...(claimed === undefined ? {} : { claimed: claimed.split(',').map(toPlace) }) }
}

function toPlace(text: string): { segment: number; id: bigint } {
  const [segment = '', id = ''] = text.split(':')
  return { segment: Number(segment), id: BigInt(id) }
}

/** One document for the whole step. What is JSON already goes in as it is; what is not said is left out. */
function toJson(request: CommitRequest): string {
  const { found, write, lanes, strict, endsEffects, claim, done } = request
  const parts: string[] = []
  const add = (name: string, json: string) => void parts.push(`"${name}":${json}`)
  if (done) add('done', claimJson(done))
  if (strict) add('strict', 'true')
  if (write.uniqueKey !== undefined) {
    add('key', JSON.stringify(write.uniqueKey))
    if (found.uniqueKey !== null) add('freed', JSON.stringify(found.uniqueKey))
  }
  if (write.events.length > 0) add('events', list(write.events.map(eventJson)))
  if (write.tenant !== undefined) add('tenant', JSON.stringify(write.tenant))
  if (write.continuesAfter !== undefined) add('continues', String(write.continuesAfter))
  if (write.completed) {
    add('completed', 'true')
    if (found.uniqueKey !== null) add('held_key', JSON.stringify(found.uniqueKey))
  }
  if (write.snapshot) {
    const { state, version, keep } = write.snapshot
    add('state', state)
    add('state_version', String(version))
    if (keep !== 'all') add('keep', String(keep))
  }
  const over = write.completed || write.continuesAfter !== undefined
  // A new instance has no timers yet.
  const replaced = found.version === 0 ? [] : write.timers.filter(({ held }) => !held)
  const gone = [...write.cancelTimers, ...replaced.map(({ uniqueKey }) => uniqueKey)]
  if (over || gone.length > 0) add('timer_lane', String(lanes.timers))
  if (over) add('timers_over', 'true')
  else if (gone.length > 0) add('gone', JSON.stringify(gone))
  if (write.completed && endsEffects) add('effects_over', 'true')
  const work = [
    ...write.effects.map(({ payload }, n) => `[${lanes.effects[n]},${payload}]`),
    ...write.timers.map((timer) => timerJson(timer, lanes.timers)),
  ]
  if (work.length > 0) {
    add('work', list(work))
    add('at', String(found.now.getTime()))
  }
  if (write.effects[0]?.ordered) add('ordered', 'true')
  if (claim) {
    add('worker', JSON.stringify(claim.worker))
    add('token', claim.token.toString())
  }
  if (write.recorded) {
    add('input_id', JSON.stringify(write.recorded.inputId))
    add('outcome', write.recorded.outcome)
  }
  if (write.observation) add('seen', observationJson(write.observation))
  return `{${parts.join(',')}}`
}

function list(parts: readonly string[]): string {
  return `[${parts.join(',')}]`
}

function claimJson({ segment, id, token }: EndedDelivery['claim']): string {
  return `[${segment},${id},${token}]`
}

function eventJson({ id, type, payload, metadata }: StepWrite['events'][number]): string {
  return `[${JSON.stringify(id)},${JSON.stringify(type)},${payload},${metadata}]`
}

function timerJson({ uniqueKey, dueMs, payload }: StepWrite['timers'][number], lane: number): string {
  const due = dueMs === Number.POSITIVE_INFINITY ? HELD : new Date(dueMs).toISOString()
  return `[${lane},${payload},${JSON.stringify(uniqueKey)},"${due}"]`
}

/** When what waits for its instance to be resumed is due. */
export const HELD = '9999-01-01T00:00:00.000Z'

function observationJson(seen: NonNullable<StepWrite['observation']>): string {
  const words = JSON.stringify({
    input_id: seen.inputId,
    input_type: seen.inputType,
    redacted: seen.redacted,
    outcome: seen.outcome,
    decided_at: seen.decidedAtMs,
  })
  const rejection = seen.rejection === undefined ? '' : `,"rejection":${seen.rejection}`
  return `${words.slice(0, -1)},"input":${seen.input}${rejection}}`
}

/** The number of a lane; made if it is new, outside of the caller's transaction. */
export async function selectLane(db: Queryable, kind: string, name: string, destination: string): Promise<number> {
  const { rows } = await db.query<{ lane: number }>(
    `select ${db.schema}.delivery_lane($1::text, $2::text, $3::text, '', 0::smallint) as lane`,
    [kind, name, destination],
  )
  return Number(rows[0]!.lane)
}
