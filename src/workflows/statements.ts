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

/** A step that was decided on what this process remembers. */
export interface Tried extends CommitRequest {
  /** Of the last event that it knows. */
  readonly position: bigint
  readonly snapshotVersion: number
  readonly inputId: string | undefined
  /** `ask`: nothing is known of the instance. `again`: it was sent before, and the answer got lost. */
  readonly as?: 'ask' | 'again' | undefined
}

/** Written where what was known is so still. Deliveries that ended go along. */
export function tryStatement(
  { schema }: SqlDialect,
  tries: readonly Tried[],
  ended: readonly EndedDelivery['claim'][] = [],
): Statement {
  return {
    text: `select ${schema}.workflow_try($1, $2, ${SCHEMA_LEVEL}) as answer`,
    values: [list(tries.map(triedJson)), list(ended.map(claimJson))],
  }
}

function triedJson(tried: Tried): string {
  const { position, snapshotVersion, inputId, as, found } = tried
  const forInput = inputId === undefined ? '' : `,"for_input":${JSON.stringify(inputId)}`
  const how = as === undefined ? '' : `,"${as}":true`
  const known = `"position":${position},"state_version":${snapshotVersion},"at":${found.now.getTime()}${forInput}${how}`
  return `{${known},${stepJson(tried).slice(1)}`
}

/** How a step ended: written now, written before, refused on what is stored by now, or held by another transaction. */
export type TryAnswer =
  | { readonly committed: Committed }
  | { readonly happened: bigint }
  | { readonly found: Found }
  | 'busy'

export interface TryAnswers {
  /** One for each step. */
  readonly answers: readonly TryAnswer[]
  readonly deleted: Set<bigint>
  /** The clock of the database, when it answered. */
  readonly clockMs: number
}

/** The answer of workflow_try. */
interface TriedAnswer {
  readonly refused: readonly { readonly n: number; readonly happened?: string; readonly found?: Loaded | null }[]
  readonly committed: CommitAnswer | null
  readonly clock_ms: number
}

export function toTryAnswers({ answer }: { answer: string }, steps: number): TryAnswers {
  const { refused, committed, clock_ms } = parseJson(answer, DEEP) as TriedAnswer
  const written = committed ? toAllCommitted(committed) : { steps: [], deleted: new Set<bigint>() }
  const refusals = new Map(refused.map((refusal) => [refusal.n, refusal]))
  let next = 0
  const answers = Array.from({ length: steps }, (_, n): TryAnswer => {
    const refusal = refusals.get(n)
    if (refusal === undefined) return { committed: written.steps[next++]! }
    if (refusal.happened !== undefined) return { happened: BigInt(refusal.happened) }
    return refusal.found ? { found: toFound(refusal.found) } : 'busy'
  })
  return { answers, deleted: written.deleted, clockMs: clock_ms }
}

/** The answer of workflow_load. */
interface Loaded {
  readonly version: string
  readonly position: string
  readonly generation: number
  readonly completed: boolean
  readonly paused: boolean
  readonly holds: boolean
  readonly unique_key: string | null
  readonly clock_ms: number
  readonly outcome: RecordedOutcome | null
  /** Without a state a new life begins; a state may be null. */
  readonly snapshot: { readonly version: number; readonly state?: unknown } | null
  readonly events: readonly LoadedEvent[] | null
  readonly follows_known: boolean
}

interface LoadedEvent {
  readonly version: number
  readonly position: number | bigint
  readonly id: string
  readonly type: string
  readonly schema_version: number
  readonly payload: unknown
}

export function toFoundOne({ answer }: { answer: string }): Found {
  return toFound(parseJson(answer, DEEP) as Loaded)
}

function toFound(loaded: Loaded): Found {
  const { version, position, generation, completed, paused, holds, snapshot, events, outcome } = loaded
  return {
    now: new Date(loaded.clock_ms),
    version: Number(version),
    position: BigInt(position),
    generation,
    completed,
    paused,
    holds,
    uniqueKey: loaded.unique_key,
    snapshot: snapshot === null ? undefined : toSnapshot(snapshot),
    events: events === null ? [] : events.map(toHistoryEvent),
    followsKnown: loaded.follows_known,
    recorded: outcome ?? undefined,
  }
}

function toSnapshot({ version, ...kept }: NonNullable<Loaded['snapshot']>): Found['snapshot'] {
  return { version, state: 'state' in kept ? { json: kept.state } : undefined }
}

const DEEP = { maxDepth: 1_020 }

function toHistoryEvent({ version, position, id, type, schema_version, payload }: LoadedEvent): HistoryEvent {
  return { version, position: BigInt(position), id, type, schemaVersion: schema_version, payload }
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
  const { text, values } = commitStatement(db, request)
  const { rows } = await db.query<{ answer: string }>(text, values)
  return toCommitted(rows[0]!)
}

/** All that follows from one step is written, or nothing. */
export function commitStatement({ schema, sendsUntyped = false }: SqlDialect, request: CommitRequest): Statement {
  return {
    text: sendsUntyped
      ? `select ${schema}.workflow_commit($1, $2, ${SCHEMA_LEVEL}) as answer`
      : `select ${schema}.workflow_commit(($1::text)::jsonb, ($2::text)::jsonb, ${SCHEMA_LEVEL}) as answer`,
    values: [list([stepJson(request)]), '[]'],
  }
}

/** The answer of workflow_commit. */
type CommitAnswer =
  | { readonly taken_by: string }
  | {
      /** Of the claimed effects. */
      readonly segment: number | null
      readonly deleted: readonly string[]
      readonly steps: readonly { readonly position: string; readonly claimed?: readonly string[] }[]
    }

export function toCommitted({ answer }: { answer: string }): Committed {
  return toAllCommitted(JSON.parse(answer) as CommitAnswer).steps[0]!
}

function toAllCommitted(committed: CommitAnswer): { steps: Committed[]; deleted: Set<bigint> } {
  if ('taken_by' in committed) return { steps: [{ takenBy: committed.taken_by }], deleted: new Set() }
  const { segment, steps, deleted } = committed
  return {
    steps: steps.map(({ position, claimed }) => ({
      position: BigInt(position),
      ...(claimed && { claimed: claimed.map((id) => ({ segment: segment!, id: BigInt(id) })) }),
    })),
    deleted: new Set(deleted.map(BigInt)),
  }
}

/** One object for the whole step. Parts that are JSON already go in as they are; what is not said is left out. */
function stepJson(request: CommitRequest): string {
  const { instance, found, write, lanes, strict, endsEffects, claim, done } = request
  const parts: string[] = []
  const add = (name: string, json: string) => void parts.push(`"${name}":${json}`)
  add('type', JSON.stringify(instance.type))
  add('id', JSON.stringify(instance.id))
  add('version', String(found.version))
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
  const { effects, timers } = write
  if (over || gone.length > 0 || timers.length > 0) add('timer_lane', String(lanes.timers))
  if (over) add('timers_over', 'true')
  else if (gone.length > 0) add('gone', JSON.stringify(gone))
  if (write.completed && endsEffects) add('effects_over', 'true')
  if (effects.length > 0) {
    add('effects', list(effects.map(({ payload }, n) => `{"lane":${lanes.effects[n]},"payload":${payload}}`)))
    if (effects[0]!.ordered) add('ordered', 'true')
  }
  if (timers.length > 0) add('timers', list(timers.map(timerJson)))
  if (effects.length > 0 || timers.length > 0) add('at', String(found.now.getTime()))
  if (claim) {
    add('worker', JSON.stringify(claim.worker))
    add('token', claim.token.toString())
  }
  if (write.recorded) {
    add('input_id', JSON.stringify(write.recorded.inputId))
    add('outcome', write.recorded.outcome)
    if (write.recorded.position !== undefined) add('input_position', String(write.recorded.position))
  }
  if (write.observation) add('seen', observationJson(write.observation))
  return `{${parts.join(',')}}`
}

function list(parts: readonly string[]): string {
  return `[${parts.join(',')}]`
}

function claimJson({ segment, id, token }: EndedDelivery['claim']): string {
  return `{"segment":${segment},"id":${id},"token":${token}}`
}

function eventJson({ id, type, payload, metadata }: StepWrite['events'][number]): string {
  return `{"id":${JSON.stringify(id)},"type":${JSON.stringify(type)},"payload":${payload},"metadata":${metadata}}`
}

function timerJson({ uniqueKey, dueMs, payload }: StepWrite['timers'][number]): string {
  const due = dueMs === Number.POSITIVE_INFINITY ? HELD : new Date(dueMs).toISOString()
  return `{"unique_key":${JSON.stringify(uniqueKey)},"due":"${due}","payload":${payload}}`
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
    keep_seconds: seen.keepSeconds,
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
