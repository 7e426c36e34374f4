/** What destinations can take and how they are, shared by all processes. */
import type { Queryable } from '../postgres/index.ts'
import { LONGEST_ASKED_MS } from '../runtime/index.ts'

/** So many failures in a row open the circuit. */
const CIRCUIT_THRESHOLD = 5

export interface DestinationLimits {
  readonly destination: string
  readonly concurrency: number | null
  /** A second. */
  readonly rate: number | null
  readonly burst: number | null
}

/** The limits in force are those that were set last; a destination that is not named keeps its state and loses its limits. */
export async function saveLimits(db: Queryable, limits: readonly DestinationLimits[]): Promise<void> {
  await db.query(
    `with given as materialized (
       select * from jsonb_to_recordset(($1::text)::jsonb)
                  as g(destination text, concurrency integer, rate double precision, burst double precision)),
     dropped as (
       update ${db.schema}.destinations d
          set concurrency = null, rate = null, burst = null, tokens = null, changed_at = clock_timestamp()
        where (d.concurrency is not null or d.rate is not null) and not exists (select from given g where g.destination = d.destination))
     insert into ${db.schema}.destinations as d (destination, concurrency, rate, burst)
     select destination, concurrency, rate, burst from given
     on conflict (destination) do update
       set concurrency = excluded.concurrency, rate = excluded.rate, burst = excluded.burst, changed_at = clock_timestamp()
     where (d.concurrency, d.rate, d.burst) is distinct from (excluded.concurrency, excluded.rate, excluded.burst)`,
    [JSON.stringify(limits)],
  )
}

/**
 * A failure of the destination. Enough of them in a row open its circuit, and a failed probe opens it again for longer:
 * ten seconds, doubling to five minutes, with jitter. Calls that had begun before it opened say nothing new. Answers
 * whether it is open.
 */
export async function noteFailure(db: Queryable, destination: string): Promise<boolean> {
  const { rows } = await db.query<{ isOpen: boolean }>(
    `insert into ${db.schema}.destinations as d (destination, failures)
     values ($1::text, 1)
     on conflict (destination) do update
       set failures = d.failures + 1,
           opened_at = case when d.failures + 1 >= ${CIRCUIT_THRESHOLD} then coalesce(d.opened_at, clock_timestamp()) end,
           reopened = case when d.opened_at is null then 0 else least(d.reopened + d.probing::integer, 5) end,
           open_until = case
             when d.opened_at is not null and not d.probing then d.open_until
             when d.failures + 1 >= ${CIRCUIT_THRESHOLD} then clock_timestamp() + make_interval(secs =>
               least(300, 10 * 2 ^ case when d.opened_at is null then 0 else least(d.reopened + 1, 5) end) * (0.75 + random() / 2)) end,
           probing = false,
           changed_at = clock_timestamp()
     returning opened_at is not null as "isOpen"`,
    [destination],
  )
  return rows[0]!.isOpen
}

/**
 * It answered: whatever was held against it is forgotten. A rest goes on: what answered was sent before it asked for one.
 * Answers whether its circuit was open.
 */
export async function noteSuccess(db: Queryable, destination: string): Promise<boolean> {
  const { rows } = await db.query<{ wasOpen: boolean }>(
    `with was as materialized (
       select destination, opened_at from ${db.schema}.destinations
        where destination = $1::text and (failures > 0 or opened_at is not null) for update)
     update ${db.schema}.destinations d
        set failures = 0, opened_at = null, open_until = null, reopened = 0, probing = false, changed_at = clock_timestamp()
       from was where d.destination = was.destination
     returning was.opened_at is not null as "wasOpen"`,
    [destination],
  )
  return rows[0]?.wasOpen ?? false
}

/** It asked to be left alone for so long: nothing else is sent there meanwhile. */
export async function letRest(db: Queryable, destination: string, forMs: number): Promise<void> {
  await db.query(
    `insert into ${db.schema}.destinations as d (destination, resting_until)
     values ($1::text, clock_timestamp() + make_interval(secs => ($2::text)::float8 / 1000))
     on conflict (destination) do update
       set resting_until = greatest(d.resting_until, excluded.resting_until), changed_at = clock_timestamp()`,
    [destination, String(Math.min(forMs, LONGEST_ASKED_MS))],
  )
}
