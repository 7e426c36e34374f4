/** Claims of a worker that is only a row: what the database gives, without a process that asks in its own time. */
import type pg from 'pg'

export const NAMES = JSON.stringify([{ kind: 'effect', name: 'mail' }])

export interface ByHand {
  readonly names?: string
  readonly suspects?: boolean
  readonly running?: object
}

/** Answers the numbers in the payloads. */
export async function claimByHand(
  sql: pg.Client,
  limit: number,
  { names = NAMES, suspects = true, running }: ByHand = {},
): Promise<number[]> {
  await enlistByHand(sql)
  const { rows } = await sql.query(
    `select (payload::jsonb ->> 'n')::int as n
       from aftercommit.claim_deliveries('by hand', $1, $2, $3, $4, $5, 100)`,
    [Math.floor(Math.random() * 1e9), names, limit, suspects, running === undefined ? null : JSON.stringify(running)],
  )
  return rows.map(({ n }) => n)
}

export async function enlistByHand(sql: pg.Client): Promise<void> {
  await beginLeaseByHand(sql, 'by hand')
  await sql.query(
    `insert into aftercommit.delivery_workers (worker, process) values ('by hand', 'by hand') on conflict do nothing`,
  )
}

/** A process that is only a row, and lives for as long as the test. */
export async function beginLeaseByHand(sql: pg.Client, lease: string): Promise<void> {
  await sql.query(
    `insert into aftercommit.processes (process, host, pid, version, config_hash, lease, lease_until)
     values ($1, 'test', 1, '0', '0', $1, 'infinity') on conflict do nothing`,
    [lease],
  )
}

/** Bytes of all segments, once those that can be were emptied: one that a worker looks at just then is left for later. */
export async function emptiedTo(sql: pg.Client): Promise<number> {
  await sql.query('select aftercommit.rotate_deliveries(1000)')
  const { rows } = await sql.query(
    `select sum(pg_relation_size(inhrelid::regclass))::bigint as bytes
       from pg_inherits where inhparent = 'aftercommit.deliveries'::regclass`,
  )
  return Number(rows[0].bytes)
}

/** Pages that one claim looks at. */
export async function pagesOfClaim(sql: pg.Client, { names = NAMES, suspects = true }: ByHand = {}): Promise<number> {
  await claimByHand(sql, 1, { names, suspects })
  await sql.query('begin')
  const { rows } = await sql.query(
    `explain (analyze, buffers, format json)
       select * from aftercommit.claim_deliveries('by hand', 1, '${names}', 10, ${suspects}, '{}', 100)`,
  )
  await sql.query('rollback')
  const { Plan: plan } = rows[0]['QUERY PLAN'][0]
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
}
