/** What is worked on, by whom and where it goes: names, pauses, orphans and destinations. All of it only reads. */
import type { Queryable } from '../postgres/index.ts'
import type { DeliveryKind } from './delivery.ts'
import { ms, toDate } from './inspect-statements.ts'

/** A name that somebody can work on, that has had work, or that is paused. */
export interface WorkName {
  readonly kind: DeliveryKind
  readonly name: string
  /** Live workers that can do it. */
  readonly workers: number
  readonly paused: boolean
}

export async function selectNames(db: Queryable): Promise<WorkName[]> {
  const { rows } = await db.query<{ kind: DeliveryKind; name: string; workers: number; paused: boolean }>(
    `select n.kind, n.name, sum(n.workers)::integer as workers, bool_or(n.paused) as paused
       from (select distinct kind, name, 0 as workers, false as paused from ${db.schema}.delivery_lanes
             union all
             select kind, name, 0, true from ${db.schema}.delivery_pauses
             union all
             select kind, name, 1, false from ${registered(db)}) n
      group by n.kind, n.name
      order by n.kind, n.name`,
  )
  return rows.map(({ kind, name, workers, paused }) => ({ kind, name, workers: Number(workers), paused }))
}

/** A name that is not worked on for now. */
export interface DeliveryPause {
  readonly kind: DeliveryKind
  readonly name: string
  readonly who: string
  readonly reason: string | null
  readonly at: Date
}

export async function selectPauses(db: Queryable): Promise<DeliveryPause[]> {
  const { rows } = await db.query<Omit<DeliveryPause, 'at'> & { at: number }>(
    `select kind, name, who, reason, ${ms('at')} as at from ${db.schema}.delivery_pauses order by kind, name`,
  )
  return rows.map((row) => ({ ...row, at: new Date(Number(row.at)) }))
}

/** A name with work that no live worker can do. */
export interface OrphanedWork {
  readonly kind: DeliveryKind
  readonly name: string
  readonly count: number
  readonly oldest: Date
}

/** Lanes are probed one by one, and only those that nobody works on are counted. */
export async function selectOrphans(db: Queryable): Promise<OrphanedWork[]> {
  const { rows } = await db.query<{ kind: DeliveryKind; name: string; count: string; oldest: number }>(
    `select l.kind, l.name, sum(c.count)::text as count, min(c.oldest) as oldest
       from ${db.schema}.busy_lanes(0, ${MOST_LANES}) b
       join ${db.schema}.delivery_lanes l on l.lane = b
      cross join lateral (
        select count(*) as count, ${ms('min(d.created_at)')} as oldest
          from ${db.schema}.deliveries d
         where d.lane = l.lane) c
      where c.count > 0
        and not exists (select from ${registered(db)} where n.kind = l.kind and n.name = l.name)
      group by l.kind, l.name
      order by l.kind, l.name`,
  )
  return rows.map(({ kind, name, count, oldest }) => ({
    kind,
    name,
    count: Number(count),
    oldest: new Date(Number(oldest)),
  }))
}

const MOST_LANES = 10_000

/** Kind and name of everything that a live worker has registered, once for each worker. */
function registered(db: Queryable): string {
  return `${db.schema}.live_leases g
            join ${db.schema}.delivery_workers w on w.worker = g.lease
            cross join lateral jsonb_to_recordset(w.names) as n(kind text, name text)`
}

export interface DestinationState {
  readonly destination: string
  /** How many at a time, how many a second and with which burst, over all processes; null for no limit. */
  readonly concurrency: number | null
  readonly rate: number | null
  readonly burst: number | null
  /** half-open: the next delivery is a probe, or one is under way. */
  readonly circuit: 'closed' | 'open' | 'half-open'
  /** In a row. */
  readonly failures: number
  readonly openedAt: Date | null
  readonly openUntil: Date | null
  /** It asked to be left alone until then. */
  readonly restingUntil: Date | null
  readonly paused: boolean
  /** Who paused it and why. */
  readonly who: string | null
  readonly reason: string | null
  readonly running: number
  /** Everything else that is to go there. */
  readonly waiting: number
}

/** What people can call one: all that observers or limits name, and all that something has been added for. */
export async function selectDestinationNames(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ destination: string }>(
    `select destination from ${db.schema}.destinations
     union
     select destination from ${db.schema}.delivery_lanes where destination <> ''
     order by 1`,
  )
  return rows.map(({ destination }) => destination)
}

/** Those that observers or limits name, those with a pause or trouble, and those that something is to go to. */
export async function selectDestinations(db: Queryable): Promise<DestinationState[]> {
  const { rows } = await db.query<DestinationRow>(
    `with used as (
       select l.destination, sum(c.running) as running, sum(c.waiting) as waiting
         from (select d.lane, count(w.lease) as running, count(*) - count(w.lease) as waiting
                 from ${db.schema}.deliveries d
                 left join ${db.schema}.live_leases w on w.lease = d.worker and d.token is not null
                group by d.lane) c
         join ${db.schema}.delivery_lanes l on l.lane = c.lane
        where l.destination <> ''
        group by l.destination)
     select destination, t.concurrency, t.rate, t.burst,
            case when t.opened_at is null then 'closed'
                 when t.open_until > statement_timestamp() and not t.probing then 'open'
                 else 'half-open' end as circuit,
            coalesce(t.failures, 0) as failures, ${ms('t.opened_at')} as opened, ${ms('t.open_until')} as until,
            case when t.resting_until > statement_timestamp() then ${ms('t.resting_until')} end as resting,
            coalesce(t.paused, false) as paused, t.who, t.reason,
            coalesce(u.running, 0)::text as running, coalesce(u.waiting, 0)::text as waiting
       from ${db.schema}.destinations t
       full join used u using (destination)
      order by destination`,
  )
  return rows.map(toDestination)
}

/** Circuits that are not closed, by the row alone: cheap enough for a scrape. */
export async function selectCircuits(db: Queryable): Promise<{ destination: string; open: boolean }[]> {
  const { rows } = await db.query<{ destination: string; open: boolean }>(
    `select destination, opened_at is not null as open from ${db.schema}.destinations order by destination`,
  )
  return rows
}

interface DestinationRow {
  destination: string
  concurrency: number | null
  rate: number | null
  burst: number | null
  circuit: DestinationState['circuit']
  failures: number
  opened: number | null
  until: number | null
  resting: number | null
  paused: boolean
  who: string | null
  reason: string | null
  running: string
  waiting: string
}

function toDestination(row: DestinationRow): DestinationState {
  return {
    destination: row.destination,
    concurrency: toNumber(row.concurrency),
    rate: toNumber(row.rate),
    burst: toNumber(row.burst),
    circuit: row.circuit,
    failures: Number(row.failures),
    openedAt: toDate(row.opened),
    openUntil: toDate(row.until),
    restingUntil: toDate(row.resting),
    paused: row.paused,
    who: row.paused ? row.who : null,
    reason: row.paused ? row.reason : null,
    running: Number(row.running),
    waiting: Number(row.waiting),
  }
}

function toNumber(value: number | null): number | null {
  return value === null ? null : Number(value)
}
