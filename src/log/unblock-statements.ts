import type { Queryable } from '../postgres/index.ts'

/** Time for a session to roll back and let go of its locks. */
const GOODBYE_MS = 10_000

/** Ends a session, and only while it holds the sequence: its number may have gone to somebody else since one looked. */
export async function terminateHolder(db: Queryable, pid: number): Promise<'ended' | 'no holder' | 'still there'> {
  const { rows } = await db.query<{ ended: boolean }>(
    `select pg_catalog.pg_terminate_backend(l.pid, ${GOODBYE_MS}) as ended
       from pg_catalog.pg_locks l
      where l.locktype = 'relation'
        and l.relation = pg_catalog.to_regclass($1::text)
        and l.database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
        and l.mode = 'RowExclusiveLock'
        and l.granted
        and l.pid = ($2::text)::integer
        and l.pid <> pg_catalog.pg_backend_pid()`,
    [`${db.schema}.positions`, String(pid)],
  )
  if (rows.length === 0) return 'no holder'
  return rows.some(({ ended }) => ended) ? 'ended' : 'still there'
}

/** Must not be inside a transaction. */
export async function rollbackPrepared(db: Queryable, gidLiteral: string): Promise<void> {
  await db.query(`rollback prepared ${gidLiteral}`)
}
