/**
 * What keeps rows that are done with from being removed. While a transaction somewhere holds an old snapshot, every look for
 * work walks over them: a queue becomes slower the longer such a transaction stays.
 */
import { type Finding, ok, type Queryable } from '../postgres/index.ts'
import { formatDuration } from '../runtime/index.ts'

export interface VacuumState {
  /** Rows of deliveries that are done with and still there, as the server last counted them. */
  readonly deadTuples: number
  /** The session that holds the oldest snapshot of this database, as far as this role may see. */
  readonly oldest: SnapshotHolder | undefined
}

export interface SnapshotHolder {
  readonly pid: number
  readonly application: string
  readonly ageMs: number
}

export async function selectVacuum(db: Queryable): Promise<VacuumState> {
  const { rows } = await db.query<{ dead: string; pid: number | null; application: string | null; age: string | null }>(
    `select t.dead::text as dead, a.pid, a.application_name as application, a.age::text as age
       from (select coalesce(sum(pg_stat_get_dead_tuples(p.relid)), 0) as dead
               from pg_partition_tree(($1::text)::regclass) p
              where p.isleaf) t
       left join lateral (
         select pid, application_name, extract(epoch from clock_timestamp() - xact_start) * 1000 as age
           from pg_stat_activity
          where datname = current_database() and backend_xmin is not null and pid <> pg_backend_pid()
          order by xact_start
          limit 1) a on true`,
    [`${db.schema}.deliveries`],
  )
  const { dead, pid, application, age } = rows[0]!
  return {
    deadTuples: Number(dead),
    oldest: pid === null || age === null ? undefined : { pid, application: application ?? '', ageMs: Number(age) },
  }
}

const LONG_MS = 10 * 60_000

export function vacuumFinding({ deadTuples, oldest }: VacuumState): Finding {
  if (oldest === undefined || oldest.ageMs < LONG_MS) {
    return ok('snapshots', `none is old; ${deadTuples} rows of deliveries wait to be vacuumed`)
  }
  const { pid, application, ageMs } = oldest
  const who = application === '' ? `pid ${pid}` : `pid ${pid} (${application})`
  return {
    level: 'warning',
    check: 'snapshots',
    message:
      `A transaction of ${who} has held a snapshot for ${formatDuration(Math.round(ageMs / 1_000) * 1_000)}: rows that are done ` +
      `with cannot be removed meanwhile (${deadTuples} of deliveries now), and every look for work takes longer.`,
    fix: `Let it end, or end it: select pg_terminate_backend(${pid})`,
  }
}
