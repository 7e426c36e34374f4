import type { Queryable } from './queryable.ts'

/** One act of an operator. It is written in the same transaction as what it describes, or it describes nothing. */
export interface AuditEntry {
  who: string
  /** The verb: `subscription.seek`, `letter.redrive`. */
  what: string
  /** What it was done to. */
  target: string
  before?: unknown
  after?: unknown
  reason?: string
}

export async function recordAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  await db.query(
    `insert into ${db.schema}.audit (who, what, target, before, after, reason)
     values ($1::text, $2::text, $3::text, ($4::text)::jsonb, ($5::text)::jsonb, $6::text)`,
    [entry.who, entry.what, entry.target, toJson(entry.before), toJson(entry.after), entry.reason ?? null],
  )
}

/** Positions are bigint, which JSON has no word for; they are strings there, as everywhere in JSON. */
function toJson(value: unknown): string | null {
  if (value === undefined) return null
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? part.toString() : part))
}
