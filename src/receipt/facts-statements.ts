/** Facts of receipts that belong to no other stage: what each subscription knows of an event. It only reads. */
import { type ErrorRecord, type LetterStatus, subscriptionLettersOf } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'

/** One subscription, as it stands for one event. */
export interface SubscriptionFact {
  readonly id: string
  readonly kind: string
  readonly status: 'active' | 'failing' | 'stopped' | 'paused'
  readonly reason: string | null
  readonly position: bigint
  /** The checkpoint says that the event is finished. */
  readonly isFinished: boolean
  /** The filter that judged the event, or will. Null: the subscription began after the event. */
  readonly filter: { readonly on: readonly string[]; readonly tenant: string | null } | null
  readonly owner: string | null
  readonly isParked: boolean
  /** An operator moved the checkpoint past the event before it was finished. */
  readonly skipped: { readonly at: Date; readonly who: string } | null
  readonly deadLetter: {
    readonly id: bigint
    readonly status: LetterStatus
    readonly key: string
    readonly attempts: number
    readonly error: ErrorRecord
    readonly at: Date
  } | null
}

/**
 * The filter of an event is the newest one that was registered below its position. A checkpoint that was moved back makes
 * the filter of today judge the event again.
 */
export async function selectSubscriptionFacts(
  db: Queryable,
  event: { readonly id: string; readonly position: bigint },
): Promise<SubscriptionFact[]> {
  const { rows } = await db.query<SubscriptionRow>(
    `select s.id, s.kind, case when s.paused then 'paused' else s.status end as status, s.reason, p.position::text as pos,
            (p.position >= ($2::text)::bigint or p.done @> ($2::text)::bigint) as finished,
            case when seek.direction = 'back' then s.definition else judged.definition end::text as definition,
            (select g.process from ${db.schema}.live_leases g where g.lease = p.owner) as owner,
            exists (select from ${db.schema}.parked k where k.owner = s.id and k.position = ($2::text)::bigint) as parked,
            case when seek.direction = 'forward' then (extract(epoch from seek.at) * 1000)::float8 end as skipped, seek.who,
            l.id::text as letter, l.status as letter_status, l.key, l.attempts, l.error::text as error,
            (extract(epoch from l.last_attempt_at) * 1000)::float8 as died
       from ${db.schema}.subscriptions s
       join ${db.schema}.subscription_partitions p on p.id = s.id
       left join lateral (
         select v.definition
           from ${db.schema}.subscription_versions v
          where v.id = s.id and coalesce(v.from_position, -1) < ($2::text)::bigint
          order by v.generation desc
          limit 1) judged on true
       left join lateral (
         select a.at, a.who,
                case when (a.before ->> 'position')::bigint < (a.after ->> 'position')::bigint then 'forward' else 'back' end as direction
           from ${db.schema}.audit a
          where a.target = s.id and a.what in ('subscription.seek', 'subscription.fast-forward')
            and ($2::text)::bigint > least((a.before ->> 'position')::bigint, (a.after ->> 'position')::bigint)
            and ($2::text)::bigint <= greatest((a.before ->> 'position')::bigint, (a.after ->> 'position')::bigint)
          order by a.at desc
          limit 1) seek on true
       left join (${subscriptionLettersOf(db, '$1::text')}) l on l.owner = s.id
      where s.kind <> 'observers'
      order by s.id`,
    [event.id, event.position.toString()],
  )
  return rows.map(toFact)
}

/** How far each reader of observers has come, by the id of its subscription. */
export async function selectObserverReaders(
  db: Queryable,
  position: bigint,
): Promise<Map<string, { readonly isFinished: boolean; readonly position: bigint }>> {
  const { rows } = await db.query<{ id: string; pos: string; finished: boolean }>(
    `select s.id, p.position::text as pos, (p.position >= ($1::text)::bigint or p.done @> ($1::text)::bigint) as finished
       from ${db.schema}.subscriptions s
       join ${db.schema}.subscription_partitions p on p.id = s.id
      where s.kind = 'observers'`,
    [position.toString()],
  )
  return new Map(rows.map(({ id, pos, finished }) => [id, { isFinished: finished, position: BigInt(pos) }]))
}

export async function selectNow(db: Queryable): Promise<Date> {
  const { rows } = await db.query<{ now: number }>(
    `select (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::float8 as now`,
  )
  return new Date(Number(rows[0]!.now))
}

interface SubscriptionRow {
  id: string
  kind: string
  status: SubscriptionFact['status']
  reason: string | null
  pos: string
  finished: boolean
  definition: string | null
  owner: string | null
  parked: boolean
  skipped: number | null
  who: string | null
  letter: string | null
  letter_status: LetterStatus
  key: string
  attempts: number
  error: string
  died: number
}

function toFact(row: SubscriptionRow): SubscriptionFact {
  const { on, tenant = null } = JSON.parse(row.definition ?? '{}') as { on?: string[]; tenant?: string | null }
  return {
    id: row.id,
    kind: row.kind,
    status: row.status,
    reason: row.reason,
    position: BigInt(row.pos),
    isFinished: row.finished,
    filter: row.definition === null ? null : { on: on ?? ['*'], tenant },
    owner: row.owner,
    isParked: row.parked,
    skipped: row.skipped === null ? null : { at: new Date(Number(row.skipped)), who: row.who! },
    deadLetter:
      row.letter === null
        ? null
        : {
            id: BigInt(row.letter),
            status: row.letter_status,
            key: row.key,
            attempts: Number(row.attempts),
            error: JSON.parse(row.error),
            at: new Date(Number(row.died)),
          },
  }
}
