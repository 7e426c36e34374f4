/**
 * Every statement about push subscriptions. Those of `register` and `unregister` may run in somebody else's transaction,
 * so they give text and names of one word.
 */
import type { Queryable } from '../postgres/index.ts'
import type { CheckedSubscription } from './subscription.ts'

/** A browser signed in as somebody else belongs to the one who signed in last. True when it is new. */
export async function upsertSubscription(
  db: Queryable,
  user: string,
  { hash, endpoint, p256dh, auth }: CheckedSubscription,
): Promise<boolean> {
  const { rows } = await db.query<{ fresh: string }>(
    `insert into ${db.schema}.push_subscriptions as s (endpoint_hash, user_id, endpoint, p256dh, auth)
     values ($1, $2, $3, $4, $5)
     on conflict (endpoint_hash) do update
        set user_id = excluded.user_id, p256dh = excluded.p256dh, auth = excluded.auth, seen_at = clock_timestamp()
     returning case when s.xmax::text = '0' then 'yes' else 'no' end as fresh`,
    [hash, user, endpoint, p256dh, auth],
  )
  return rows[0]?.fresh === 'yes'
}

/** Those not seen for longest go. */
export async function deleteSurplus(db: Queryable, user: string, most: number): Promise<void> {
  await db.query(
    `delete from ${db.schema}.push_subscriptions
      where endpoint_hash in (
        select endpoint_hash
          from ${db.schema}.push_subscriptions
         where user_id = $1
         order by seen_at desc, endpoint_hash
        offset ($2::text)::integer)`,
    [user, String(most)],
  )
}

export async function deleteSubscription(db: Queryable, hash: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `delete from ${db.schema}.push_subscriptions
      where endpoint_hash = $1`,
    [hash],
  )
  return rowCount === 1
}

export interface DeviceRow {
  readonly hash: string
  readonly endpoint: string
  readonly created: string
  readonly seen: string
}

export async function selectDevices(db: Queryable, user: string): Promise<DeviceRow[]> {
  const { rows } = await db.query<DeviceRow>(
    `select endpoint_hash as hash, endpoint,
            (extract(epoch from created_at) * 1000)::bigint::text as created,
            (extract(epoch from seen_at) * 1000)::bigint::text as seen
       from ${db.schema}.push_subscriptions
      where user_id = $1
      order by seen_at desc, endpoint_hash`,
    [user],
  )
  return rows
}

/** What a message is sent to. */
export interface Recipient {
  readonly hash: string
  readonly endpoint: string
  readonly p256dh: string
  readonly auth: string
  /** It has this message from an earlier attempt. */
  readonly done: boolean
}

export async function selectRecipients(db: Queryable, user: string, message: string): Promise<Recipient[]> {
  const { rows } = await db.query<Recipient>(
    `select s.endpoint_hash as hash, s.endpoint, s.p256dh, s.auth,
            exists (select
                      from ${db.schema}.push_progress p
                     where p.message = $2
                       and p.endpoint_hash = s.endpoint_hash) as done
       from ${db.schema}.push_subscriptions s
      where s.user_id = $1
      order by s.seen_at desc, s.endpoint_hash`,
    [user, message],
  )
  return rows
}

/** Those whose push service does not know them any more. */
export async function deleteGone(db: Queryable, hashes: readonly string[]): Promise<void> {
  await db.query(
    `delete from ${db.schema}.push_subscriptions
      where endpoint_hash in (select jsonb_array_elements_text(($1::text)::jsonb))`,
    [JSON.stringify(hashes)],
  )
}

export async function insertProgress(db: Queryable, message: string, hashes: readonly string[]): Promise<void> {
  await db.query(
    `insert into ${db.schema}.push_progress (message, endpoint_hash)
     select $1, jsonb_array_elements_text(($2::text)::jsonb)
     on conflict do nothing`,
    [message, JSON.stringify(hashes)],
  )
}

export async function deleteProgress(db: Queryable, message: string): Promise<void> {
  await db.query(
    `delete from ${db.schema}.push_progress
      where message = $1`,
    [message],
  )
}

/** Of messages that nobody will try again. */
export async function deleteOldProgress(db: Queryable, days: number): Promise<void> {
  await db.query(
    `delete from ${db.schema}.push_progress
      where at < now() - make_interval(days => ($1::text)::integer)`,
    [String(days)],
  )
}

export interface ServiceRow {
  readonly origin: string
  readonly devices: string
}

/** The push services that browsers have named, the most used first. */
export async function selectServices(db: Queryable, limit: number): Promise<ServiceRow[]> {
  const { rows } = await db.query<ServiceRow>(
    `select substring(endpoint from '^[a-zA-Z]+://[^/?#]+') as origin, count(*)::text as devices
       from ${db.schema}.push_subscriptions
      group by 1
      order by count(*) desc, 1
      limit ($1::text)::integer`,
    [String(limit)],
  )
  return rows
}
