/**
 * Statements that write the log, and that find one event or a position. Reads of many events are in window-statements.ts,
 * readers that follow the log in frontier-statements.ts, upkeep in upkeep-statements.ts. Parameters are text and cast here,
 * because they go through the caller's client, whichever it is.
 */
import { type Queryable, type QueryOptions, type QueryResult, SCHEMA_LEVEL } from '../postgres/index.ts'
import { explainDeclareError } from './append-error.ts'
import { type EventRow, eventColumns } from './event-row.ts'
import { toTimestampText } from './timestamp-text.ts'

/** One event, ready for the database: every part is text. */
export interface PreparedEvent {
  readonly id: string
  readonly type: string
  readonly aggregateType: string | null
  readonly aggregateId: string | null
  readonly payload: string
  readonly metadata: string
  /** As Postgres reads it; null takes the database clock. */
  readonly occurredAt: string | null
  /** JSON text of what is seldom given: tenant, changes, previous, chosen, expected. */
  readonly extra: string | null
}

/** Appends one event. The answer is `position` or `position:version`. */
export function appendOne(
  db: Queryable,
  event: PreparedEvent,
  { prepareOnClients = false }: Preparing,
): Promise<QueryResult<{ appended: string }>> {
  const { id, type, aggregateType, aggregateId, payload, metadata, occurredAt, extra } = event
  const { short, long } = appendTexts(db)
  return extra === null && occurredAt === null
    ? db.query(short, [id, type, aggregateType, aggregateId, payload, metadata], optionsOf(prepareOnClients))
    : db.query(
        long,
        [id, type, aggregateType, aggregateId, payload, metadata, occurredAt, extra],
        optionsOf(prepareOnClients),
      )
}

export async function appendOwn(db: Queryable, { id, type, payload, metadata }: PreparedEvent): Promise<string> {
  const { rows } = await db.query<{ appended: string }>(
    `select ${db.schema}.append_own($1::text, $2::text, ($3::text)::jsonb, ($4::text)::jsonb, ${SCHEMA_LEVEL})::text as appended`,
    [id, type, payload, metadata],
  )
  return rows[0]!.appended
}

export interface Preparing {
  /** Appends are prepared on our own connections. With this option, on clients of the caller as well. */
  readonly prepareOnClients?: boolean | undefined
}

function optionsOf(prepareOnClients: boolean): QueryOptions {
  return prepareOnClients ? EVERYWHERE : ON_OURS
}

const ON_OURS: QueryOptions = { repeated: true }
const EVERYWHERE: QueryOptions = { repeated: true, mayPrepareOnClient: true }

interface AppendTexts {
  readonly short: string
  readonly long: string
}

/**
 * Written once per schema: this statement is sent more often than all others together. Where parameters have no type of
 * their own they are given theirs at once: a cast by way of text is worked out by the planner, 4 % of an append.
 */
function appendTexts({ schema, sendsUntyped = false }: Queryable): AppendTexts {
  const texts = sendsUntyped ? untypedTexts : typedTexts
  const known = texts.get(schema)
  if (known) return known
  const as = (parameter: string, type: string) =>
    sendsUntyped ? `${parameter}::${type}` : `(${parameter}::text)::${type}`
  const first = `select ${schema}.append($1::text, $2::text, $3::text, $4::text, ${as('$5', 'jsonb')}, ${as('$6', 'jsonb')}`
  const long = `${first}, ${as('$7', 'timestamptz')}, ${as('$8', 'jsonb')}, ${SCHEMA_LEVEL}) as appended`
  const written = { short: `${first}, p_level => ${SCHEMA_LEVEL}) as appended`, long }
  texts.set(schema, written)
  return written
}

const untypedTexts = new Map<string, AppendTexts>()
const typedTexts = new Map<string, AppendTexts>()

/** Appends many in one statement; answers in the order given. A column nobody uses travels as null. */
export async function appendMany(
  db: Queryable,
  events: readonly PreparedEvent[],
  { prepareOnClients = false }: Preparing,
): Promise<string[]> {
  const column = (pick: (event: PreparedEvent) => string | null) =>
    events.every((event) => pick(event) === null) ? null : toArrayLiteral(events, pick)
  const { rows } = await db.query<{ appended: string }>(
    `select ${db.schema}.append_many(($1::text)::text[], ($2::text)::text[], ($3::text)::text[], ($4::text)::text[],
       ($5::text)::jsonb, ($6::text)::jsonb, ($7::text)::timestamptz[], ($8::text)::jsonb[], ${SCHEMA_LEVEL}) as appended`,
    [
      column((event) => event.id),
      column((event) => event.type),
      column((event) => event.aggregateType),
      column((event) => event.aggregateId),
      `[${events.map((event) => event.payload).join(',')}]`,
      `[${events.map((event) => event.metadata).join(',')}]`,
      column((event) => event.occurredAt),
      column((event) => event.extra),
    ],
    optionsOf(prepareOnClients),
  )
  return rows.map((row) => row.appended)
}

/** A Postgres array literal: client libraries disagree on arrays, text they all send alike. */
function toArrayLiteral(events: readonly PreparedEvent[], pick: (event: PreparedEvent) => string | null): string {
  let literal = '{'
  for (let i = 0; i < events.length; i++) {
    if (i > 0) literal += ','
    const value = pick(events[i]!)
    literal += value === null ? 'NULL' : `"${escapeElement(value)}"`
  }
  return `${literal}}`
}

function escapeElement(value: string): string {
  const escaped = value.includes('\\') ? value.replaceAll('\\', '\\\\') : value
  return escaped.includes('"') ? escaped.replaceAll('"', '\\"') : escaped
}

export async function selectEvent(db: Queryable, id: string): Promise<EventRow | undefined> {
  const { rows } = await db.query<EventRow>(
    // The fence keeps the server from a walk in order of position until it meets this id (decision 0016).
    `select ${eventColumns}
       from (select * from ${db.schema}.events where id = $1::text limit (select 1000)) same
      order by position
      limit 1`,
    [id],
  )
  return rows[0]
}

/** The first event at or above a position: one probe of a search by time. */
export async function selectFirstFrom(
  db: Queryable,
  position: bigint,
): Promise<{ position: bigint; recordedAt: number } | undefined> {
  const { rows } = await db.query<{ pos: string; recorded: number }>(
    `select position::text as pos, (extract(epoch from recorded_at) * 1000)::float8 as recorded
       from ${db.schema}.events
      where position >= ($1::text)::bigint
      order by position
      limit 1`,
    [position.toString()],
  )
  const row = rows[0]
  return row && { position: BigInt(row.pos), recordedAt: Number(row.recorded) }
}

/** The position before the first event recorded at a time or later, looked for above `after`; the head when there is none. */
export async function selectBefore(db: Queryable, after: bigint, since: Date, head: bigint): Promise<bigint> {
  const { rows } = await db.query<{ pos: string }>(
    `select position::text as pos
       from ${db.schema}.events
      where position > ($1::text)::bigint
        and recorded_at >= ($2::text)::timestamptz
      order by position
      limit 1`,
    [after.toString(), toTimestampText(since)],
  )
  return rows[0] ? BigInt(rows[0].pos) - 1n : head
}

/** The oldest position that retention has kept. */
export async function selectKeptFrom(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ kept: string }>(
    `select greatest(kept_from, 1)::text as kept from ${db.schema}.log_state`,
  )
  return BigInt(rows[0]!.kept)
}

export async function declareStream(db: Queryable, aggregateType: string, adopt: boolean): Promise<boolean> {
  try {
    const { rows } = await db.query<{ declared: boolean }>(
      `select ${db.schema}.declare_stream($1::text, $2::boolean) as declared`,
      [aggregateType, adopt],
    )
    return rows[0]!.declared
  } catch (error) {
    throw explainDeclareError(error, aggregateType)
  }
}
