/** How observers fared lately. All of it only reads. */
import type { Queryable } from '../postgres/index.ts'

export interface RunCounts {
  readonly success: number
  readonly partial: number
  readonly failure: number
}

export interface RunSummary {
  readonly runs: RunCounts
  readonly lastRunAt: Date
}

/** By observer, of the last 24 hours. */
export async function selectRunSummaries(db: Queryable): Promise<Map<string, RunSummary>> {
  const { rows } = await db.query<{ observer: string; success: string; partial: string; failure: string; at: number }>(
    `select owner as observer,
            (count(*) filter (where status = 'success'))::text as success,
            (count(*) filter (where status = 'partial'))::text as partial,
            (count(*) filter (where status = 'failure'))::text as failure,
            (extract(epoch from max(at)) * 1000)::float8 as at
       from ${db.schema}.runs
      where at > clock_timestamp() - interval '24 hours' and kind = 'observer'
      group by owner`,
  )
  return new Map(
    rows.map(({ observer, success, partial, failure, at }) => [
      observer,
      {
        runs: { success: Number(success), partial: Number(partial), failure: Number(failure) },
        lastRunAt: new Date(Number(at)),
      },
    ]),
  )
}
