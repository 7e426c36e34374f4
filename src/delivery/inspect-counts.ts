/** How many deliveries there are in each state. */
import type { Queryable, QueryResult } from '../postgres/index.ts'
import { conditions, type DeliveryFilter, type DeliveryState, STATE, withState } from './inspect-statements.ts'

export interface DeliveryCounts {
  readonly states: Readonly<Record<DeliveryState, number>>
  /** Timers whose time has come and that nobody has begun. */
  readonly timersDue: number
}

export async function countDeliveries(db: Queryable, filter: DeliveryFilter): Promise<DeliveryCounts> {
  const { where, values } = conditions(filter)
  const counted = `(select *, 1 as count from ${db.schema}.deliveries)`
  return toCounts(await db.query(`${countBy(db, counted)} where ${where} group by 1`, values))
}

/** Walks all rows once. They are put together before anything is joined: 100,000 of them have a handful of fates. */
export async function countAll(db: Queryable): Promise<DeliveryCounts> {
  const grouped = `(
         select lane, worker, token, attempts, run_at, count(*) as count
           from (select lane, worker, case when token is not null then 1 end as token, least(attempts, 1) as attempts,
                        case when run_at > statement_timestamp() then timestamptz 'infinity' else '-infinity' end as run_at
                   from ${db.schema}.deliveries) one
          group by 1, 2, 3, 4, 5)`
  return toCounts(await db.query(`${countBy(db, grouped)} group by 1`))
}

function countBy(db: Queryable, counted: string): string {
  return `select ${STATE} as state, sum(d.count)::text as count,
            coalesce(sum(d.count) filter (
              where l.kind = 'timer' and w.lease is null and d.run_at <= statement_timestamp()), 0)::text as timers
       from ${withState(db, counted)}`
}

function toCounts({ rows }: QueryResult<{ state: DeliveryState; count: string; timers: string }>): DeliveryCounts {
  const countOf = (state: DeliveryState) => Number(rows.find((row) => row.state === state)?.count ?? 0)
  return {
    states: {
      waiting: countOf('waiting'),
      running: countOf('running'),
      scheduled: countOf('scheduled'),
      retrying: countOf('retrying'),
      paused: countOf('paused'),
    },
    timersDue: rows.reduce((sum, { timers }) => sum + Number(timers), 0),
  }
}
