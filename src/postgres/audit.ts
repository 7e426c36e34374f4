import { AftercommitError } from '../errors.ts'
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

/** One act as it was recorded. */
export interface AuditedAct {
  readonly id: bigint
  readonly at: Date
  readonly who: string
  readonly what: string
  readonly target: string | null
  readonly before: unknown
  readonly after: unknown
  readonly reason: string | null
}

export interface AuditFilter {
  readonly who?: string | undefined
  /** The verb, or its beginning: `subscription.` stands for all acts on subscriptions. */
  readonly what?: string | undefined
  readonly target?: string | undefined
  /** Older than this record: the next page. */
  readonly before?: bigint | undefined
  /** Default: 50. At most 1,000. */
  readonly limit?: number | undefined
}

export interface Audit {
  /** What operators did, newest first. */
  list(filter?: AuditFilter): Promise<AuditedAct[]>
}

export function createAudit(db: Queryable): Audit {
  return { list: async (filter = {}) => selectAudit(db, filter) }
}

async function selectAudit(
  db: Queryable,
  { who, what, target, before, limit = 50 }: AuditFilter,
): Promise<AuditedAct[]> {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 1_000) {
    throw new AftercommitError(
      'BAD_OPTION',
      '`limit` must be a whole number from 1 to 1,000. Use `before` for the next page.',
    )
  }
  const { rows } = await db.query<Record<string, string | number | null>>(
    `select id::text as id, (extract(epoch from at) * 1000)::float8 as at, who, what, target, before::text as before,
            after::text as after, reason
       from ${db.schema}.audit
      where id < coalesce(($1::text)::bigint, 9223372036854775807)
        and ($2::text is null or who = $2::text)
        and ($3::text is null or what ^@ $3::text)
        and ($4::text is null or target = $4::text)
      order by id desc
      limit ${Math.trunc(limit)}`,
    [before?.toString() ?? null, who ?? null, what ?? null, target ?? null],
  )
  return rows.map((row) => ({
    id: BigInt(row.id as string),
    at: new Date(Number(row.at)),
    who: row.who as string,
    what: row.what as string,
    target: row.target as string | null,
    before: row.before === null ? null : JSON.parse(row.before as string),
    after: row.after === null ? null : JSON.parse(row.after as string),
    reason: row.reason as string | null,
  }))
}
