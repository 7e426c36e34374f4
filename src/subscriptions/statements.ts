/** Registration, checkpoints and states of subscriptions. Every write of an owner names its term. */
import { type Queryable, SERVER } from '../postgres/index.ts'
import type { Checkpoint } from './progress.ts'

/** Names one ownership of one subscription. */
export interface Held {
  readonly id: string
  readonly term: bigint
  /** Which start of which server the lease was taken on: after a failover the same term may stand for another history. */
  readonly server: string
}

export interface Registration {
  readonly generation: bigint
  /** Not there before. */
  readonly isNew: boolean
}

/**
 * The definition registered last counts: another one makes a new generation and a new term, so that an owner with the
 * old filter cannot move the checkpoint any more. A new one begins no earlier than the oldest event kept.
 */
export async function registerSubscription(
  db: Queryable,
  subscription: { id: string; kind: string; definition: string; position: bigint },
): Promise<Registration> {
  const { rows } = await db.query<{ generation: string; is_new: boolean }>(
    `with registered as (
       insert into ${db.schema}.subscriptions as s (id, kind, definition)
       values ($1::text, $2::text, ($3::text)::jsonb)
       on conflict (id) do update
         set definition = excluded.definition, kind = excluded.kind, updated_at = clock_timestamp(),
             generation = s.generation + (s.definition <> excluded.definition)::integer,
             status = case when s.definition <> excluded.definition then 'active' else s.status end
       returning generation, (xmax = 0) as is_new),
     placed as (
       insert into ${db.schema}.subscription_partitions as p (id, position, epoch)
       select $1::text, greatest(($4::text)::bigint, l.kept_from - 1), l.epoch from registered, ${db.schema}.log_state l
       on conflict (id, partition) do update
         set term = p.term + 1, owner = null, clean = true
       where exists (select from registered r where r.generation > (select s.generation from ${db.schema}.subscriptions s where s.id = $1::text))),
     versioned as (
       insert into ${db.schema}.subscription_versions (id, generation, definition, from_position)
       select $1::text, r.generation, ($3::text)::jsonb,
              coalesce((select max(greatest(p.position, coalesce(upper(p.done) - 1, p.position)))
                          from ${db.schema}.subscription_partitions p where p.id = $1::text),
                       greatest(($4::text)::bigint, l.kept_from - 1))
         from registered r, ${db.schema}.log_state l
       on conflict (id, generation) do nothing)
     select generation::text as generation, is_new from registered`,
    [subscription.id, subscription.kind, subscription.definition, subscription.position.toString()],
  )
  const row = rows[0]!
  return { generation: BigInt(row.generation), isNew: row.is_new }
}

export async function hasSubscription(db: Queryable, id: string): Promise<boolean> {
  const { rows } = await db.query(`select from ${db.schema}.subscriptions where id = $1::text`, [id])
  return rows.length > 0
}

/** Of the configuration that is registered now; undefined when there is none. */
export async function selectVersion(db: Queryable, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ version: string | null }>(
    `select definition ->> 'version' as version from ${db.schema}.subscriptions where id = $1::text`,
    [id],
  )
  return rows[0]?.version ?? undefined
}

/** How long the server lets a transaction idle, in milliseconds; 0 for ever. Later servers also limit it as a whole. */
export async function selectTransactionLimits(db: Queryable): Promise<{ setting: string; ms: number }[]> {
  const { rows } = await db.query<{ setting: string; ms: string }>(
    `select name as setting, setting as ms
       from pg_catalog.pg_settings
      where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')
        and setting <> '0'`,
  )
  return rows.map(({ setting, ms }) => ({ setting, ms: Number(ms) }))
}

/**
 * Moves the checkpoint. False when nothing was written: the lease changed hands, or a write with this number or a later one
 * is there already. Without a number, in a transaction that is not repeated, only the lease counts.
 */
export async function saveCheckpoint(
  db: Queryable,
  held: Held,
  to: Checkpoint,
  number: bigint | null = null,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update ${db.schema}.subscription_partitions
        set position = ($3::text)::bigint, done = ($4::text)::int8multirange,
            last_event_id = coalesce($5::text, last_event_id), save = coalesce(($7::text)::bigint, save),
            deaths = case when position < ($3::text)::bigint then 0 else deaths end, updated_at = clock_timestamp()
      where id = $1::text
        and term = ($2::text)::bigint
        and save < coalesce(($7::text)::bigint, save + 1)
        and ${SERVER} = $6::text`,
    [
      held.id,
      held.term.toString(),
      to.position.toString(),
      to.done,
      to.lastEventId,
      held.server,
      number === null ? null : number.toString(),
    ],
    { repeated: true },
  )
  return rowCount === 1
}

/** After an unclean end the try is written before it begins, so that an event which ends the process is counted. */
export async function countTry(
  db: Queryable,
  held: Held,
  before: Checkpoint,
  position: bigint,
): Promise<number | undefined> {
  const { rows } = await db.query<{ tries: number }>(
    `update ${db.schema}.subscription_partitions
        set tries = case when trying = ($3::text)::bigint then tries + 1 else 1 end, trying = ($3::text)::bigint,
            position = ($4::text)::bigint, done = ($5::text)::int8multirange, updated_at = clock_timestamp()
      where id = $1::text
        and term = ($2::text)::bigint
        and ${SERVER} = $6::text
    returning tries`,
    [held.id, held.term.toString(), position.toString(), before.position.toString(), before.done, held.server],
  )
  return rows[0]?.tries
}

/**
 * False when the lease changed hands: a stale owner must not stop or wake what its successor runs. A subscription that
 * stopped stays so until an operator resumes it, whatever else of the run ends later.
 */
export async function saveStatus(db: Queryable, held: Held, status: string, reason: string | null): Promise<boolean> {
  const { rows } = await db.query<{ ours: boolean }>(
    `with ours as (
       select from ${db.schema}.subscription_partitions where id = $1::text and term = ($2::text)::bigint),
     saved as (
       update ${db.schema}.subscriptions
          set status = $3::text, reason = $4::text, updated_at = clock_timestamp()
        where id = $1::text
          and (status, coalesce(reason, '')) is distinct from ($3::text, coalesce($4::text, ''))
          and status <> 'stopped'
          and exists (select from ours))
     select exists (select from ours) as ours`,
    [held.id, held.term.toString(), status, reason],
  )
  return rows[0]!.ours
}
