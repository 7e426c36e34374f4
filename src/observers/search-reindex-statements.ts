import type { Queryable } from '../postgres/index.ts'

/** How far the log was told to be final. It only grows, and whoever reads the log sees at least so much. */
export async function selectFrontier(db: Queryable): Promise<bigint> {
  const { rows } = await db.query<{ frontier: string }>(
    `select o_frontier::text as frontier from ${db.schema}.check_log()`,
  )
  return BigInt(rows[0]!.frontier)
}
