/** Adding, claiming and settling work. Whatever settles names the token of its claim. */
import { resolveLettersOf } from '../dead-letters/index.ts'
import { stringifyJson } from '../events/index.ts'
import type { Queryable } from '../postgres/index.ts'

/** A claim as the database knows it: which row, and by which token it is ours. */
export interface Claim {
  readonly segment: number
  readonly id: bigint
  readonly token: bigint
}

export interface ClaimedRow extends Claim {
  readonly lane: number
  readonly owner: string
  readonly key: string | null
  readonly payload: string
  readonly attempts: number
  readonly createdMs: number
  /** Left by a worker that is gone: it may be what ended it. */
  readonly suspect: boolean
  /** The dead letter it was made from again. */
  readonly letter: bigint | null
  /** Written as claimed, and begun at once. */
  readonly fresh?: boolean
}

export interface AddedRow {
  readonly lane: number
  readonly owner: string
  readonly key: string | null
  readonly ordered: boolean
  readonly uniqueKey: string | null
  /** The event that asked for the work. */
  readonly eventId: string | null
  /** JSON text. */
  readonly payload: string
  readonly runAt: Date | null
  readonly delayMs: number
}

export interface Added {
  readonly segment: number
  readonly id: bigint
}

/** Answers what was added. */
export async function addDeliveries(db: Queryable, added: readonly AddedRow[]): Promise<Added[]> {
  const { rows } = await db.query<{ segment: number; id: string }>(
    `select segment, id::text as id from ${db.schema}.add_deliveries(($1::text)::jsonb)`,
    [`[${added.map(toJson).join(',')}]`],
  )
  return rows.map(({ segment, id }) => ({ segment: Number(segment), id: BigInt(id) }))
}

/** What is not said is null: a row of few words is read faster. */
function toJson({ payload, runAt, ...row }: AddedRow): string {
  const fields = JSON.stringify({
    lane: row.lane,
    owner: row.owner,
    key: row.key ?? undefined,
    ordered: row.ordered || undefined,
    unique_key: row.uniqueKey ?? undefined,
    event_id: row.eventId ?? undefined,
    run_at: runAt?.toISOString(),
    delay_ms: row.delayMs || undefined,
  })
  return `${fields.slice(0, -1)},"payload":${payload}}`
}

export interface ClaimRequest {
  readonly worker: string
  /** New with every claim. */
  readonly token: bigint
  /** JSON: kind and name of what this process can do. */
  readonly names: string
  readonly limit: number
  readonly suspects: boolean
  /** JSON: how many it works on for each destination; kept for limits. */
  readonly running: string
  /** JSON: how many it works on for each share of its places. */
  readonly shares: string
  /** At most so many for one destination. */
  readonly most: number
  /** At most so many for one name without a destination. */
  readonly mostNamed: number
  /** How many could be begun at once: a destination with a limit gives no more. */
  readonly places: number
  /** JSON: shares that get no more for now. */
  readonly hanging: string
}

export interface Claimed {
  readonly rows: ClaimedRow[]
  /**
   * Of a claim that got less than it asked for: in how many milliseconds something is due; 0 for something that waits for a
   * limit, an earlier one of its key or the next turn of its lane; undefined when nothing waits.
   */
  readonly nextMs: number | undefined
}

export async function claimDeliveries(db: Queryable, request: ClaimRequest): Promise<Claimed> {
  const { rows } = await db.query<Record<string, string | number | boolean | null>>(
    `with claimed as materialized (
       select * from ${db.schema}.claim_deliveries($1::text, ($7::text)::bigint, ($2::text)::jsonb, ($3::text)::integer,
         $4::boolean, ($5::text)::jsonb, ($6::text)::integer, ($8::text)::integer, ($9::text)::jsonb,
         ($10::text)::jsonb, ($11::text)::integer))
     select segment, id::text as id, lane, owner, key, payload, attempts, created_ms, token::text as token, suspect,
            letter::text as letter, null::double precision as next_ms
       from claimed
     union all
     select null, null, null, null, null, null, null, null, null, null, null, ${db.schema}.next_delivery_ms(($2::text)::jsonb)
      where (select count(*) from claimed) < ($3::text)::integer`,
    [
      request.worker,
      request.names,
      String(request.limit),
      request.suspects,
      request.running,
      String(request.most),
      request.token.toString(),
      String(request.places),
      request.hanging,
      request.shares,
      String(request.mostNamed),
    ],
    { repeated: true },
  )
  const last = rows.at(-1)
  if (last?.id !== null) return { rows: rows.map(toClaimedRow), nextMs: 0 }
  return { rows: rows.slice(0, -1).map(toClaimedRow), nextMs: last.next_ms === null ? undefined : Number(last.next_ms) }
}

function toClaimedRow(row: Record<string, string | number | boolean | null>): ClaimedRow {
  return {
    segment: Number(row.segment),
    id: BigInt(row.id as string),
    token: BigInt(row.token as string),
    lane: Number(row.lane),
    owner: row.owner as string,
    key: row.key as string | null,
    payload: row.payload as string,
    attempts: Number(row.attempts),
    createdMs: Number(row.created_ms),
    suspect: row.suspect as boolean,
    letter: row.letter === null ? null : BigInt(row.letter as string),
  }
}

/** Whatever was claimed with these tokens is given back: it was never begun. */
export async function releaseClaims(db: Queryable, tokens: readonly bigint[]): Promise<void> {
  await db.query(
    `update ${db.schema}.deliveries
        set token = null, worker = null, alone = false, attempts = attempts - 1
      where token = any (($1::text)::bigint[])`,
    [`{${tokens.join(',')}}`],
  )
}

/** How long the oldest transaction of this role is under way; 0 when there is none. */
export async function selectOldestTransactionMs(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ ms: number | string }>(
    `select coalesce(max(extract(epoch from clock_timestamp() - xact_start)) * 1000, 0)::double precision as ms
       from pg_catalog.pg_stat_activity
      where datname = current_database() and usename = session_user and pid <> pg_catalog.pg_backend_pid()`,
  )
  return Number(rows[0]!.ms)
}

/** Whether something is due that only waits for a limit or a rest of its destination. */
export async function hasDue(db: Queryable, names: string): Promise<boolean> {
  const { rows } = await db.query<{ due: boolean }>(
    `select ${db.schema}.has_due_deliveries(($1::text)::jsonb) as due`,
    [names],
  )
  return rows[0]!.due
}

/** Done: the rows go. Answers the ids that were still ours. A claim has one token, so there are few groups. */
export async function completeDeliveries(db: Queryable, claims: readonly Claim[]): Promise<Set<bigint>> {
  const groups = new Map<string, { segment: number; token: bigint; ids: bigint[] }>()
  for (const { segment, token, id } of claims) {
    const key = `${segment}:${token}`
    const group = groups.get(key)
    if (group) group.ids.push(id)
    else groups.set(key, { segment, token, ids: [id] })
  }
  const deleted = [...groups.values()].map(
    ({ segment, token }, n) =>
      `done_${n} as (
         delete from ${db.schema}.deliveries
          where segment = ${segment} and token = ${token} and id = any (($${n + 1}::text)::bigint[])
         returning id, letter)`,
  )
  const all = [...groups.keys()].map((_, n) => `select id, letter from done_${n}`).join(' union all ')
  const { rows } = await db.query<{ id: string }>(
    `with ${deleted.join(',\n')},
     resolved as (
       ${resolveLettersOf(db, `(${all}) d`)})
     select id::text as id from (${all}) d`,
    [...groups.values()].map(({ ids }) => `{${ids.join(',')}}`),
  )
  return new Set(rows.map(({ id }) => BigInt(id)))
}

export interface Retry extends Claim {
  readonly delayMs: number
  readonly error: unknown
  /** False: it was not a try of the work, so its number is given back. */
  readonly counts: boolean
}

/** Failed, to be tried again: they move to the segment that does not rotate. Answers the ids that were still ours. */
export async function retryDeliveries(db: Queryable, retries: readonly Retry[]): Promise<Set<bigint>> {
  const { rows } = await db.query<{ id: string }>(
    `with failed as materialized (
       select * from jsonb_to_recordset(($1::text)::jsonb)
                  as f(segment smallint, id bigint, token bigint, delay_ms double precision, failure jsonb, counts boolean)),
     moved as (
       delete from ${db.schema}.deliveries d
        using failed f
        where d.segment = f.segment and d.id = f.id and d.token = f.token
       returning d.*, f.delay_ms, f.failure, f.counts)
     insert into ${db.schema}.deliveries (segment, id, lane, owner, key, ordered, unique_key, payload, created_at, run_at, attempts,
            first_attempt_at, last_attempt_at, error, letter, event_id)
     select 0, id, lane, owner, key, ordered, unique_key, payload, created_at,
            clock_timestamp() + make_interval(secs => delay_ms / 1000.0), attempts - (not counts)::integer,
            first_attempt_at, last_attempt_at, coalesce(failure, error), letter, event_id
       from moved
     returning id::text as id`,
    [
      stringifyJson(
        retries.map(({ segment, id, token, delayMs, error, counts }) => ({
          segment,
          id: id.toString(),
          token: token.toString(),
          delay_ms: delayMs,
          failure: error,
          counts,
        })),
        // A thousand errors of a few kilobytes each are more than a payload may have.
        { maxBytes: Number.MAX_SAFE_INTEGER, name: 'failures' },
      ),
    ],
  )
  return new Set(rows.map(({ id }) => BigInt(id)))
}

/** Given back without having been started: the claim is not counted. */
export async function releaseDeliveries(db: Queryable, claims: readonly Claim[]): Promise<void> {
  await db.query(
    `update ${db.schema}.deliveries d
        set token = null, worker = null, alone = false, attempts = d.attempts - 1
       from jsonb_to_recordset(($1::text)::jsonb) as c(segment smallint, id bigint, token bigint)
      where d.segment = c.segment
        and d.id = c.id
        and d.token = c.token`,
    [JSON.stringify(claims.map(({ segment, id, token }) => ({ segment, id: String(id), token: String(token) })))],
  )
}

/** Which of these claims still stand: the others were cancelled, or are somebody else's. */
export async function selectHeld(db: Queryable, claims: readonly Claim[]): Promise<Set<bigint>> {
  const { rows } = await db.query<{ id: string }>(
    `select d.id::text as id
       from jsonb_to_recordset(($1::text)::jsonb) as c(segment smallint, id bigint, token bigint)
       join ${db.schema}.deliveries d on d.segment = c.segment and d.id = c.id and d.token = c.token`,
    [JSON.stringify(claims.map(({ segment, id, token }) => ({ segment, id: String(id), token: String(token) })))],
  )
  return new Set(rows.map(({ id }) => BigInt(id)))
}
