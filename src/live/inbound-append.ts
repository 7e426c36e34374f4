/**
 * Appends what was received, all of it or nothing. Ids are chosen, so a repetition finds its event in the log; the same
 * id with other content is nobody's repetition and is refused.
 */
import type { EmitRequest, Emitted } from '../log/index.ts'
import { type Database, type Queryable, withRetry } from '../postgres/index.ts'
import type { Received } from './inbound-event.ts'
import { type Mistake, Refusal } from './inbound-problem.ts'

export interface AppendParts {
  readonly database: Database
  readonly append: (db: Queryable, requests: readonly EmitRequest[]) => Promise<Emitted[]>
}

/** What became of one event of the request, in its order. */
export interface InboundEvent {
  readonly id: string
  readonly position: string
  /** It was there already, from an earlier request or from earlier in this one. */
  readonly duplicate: boolean
}

export async function appendReceived(
  { database, append }: AppendParts,
  received: readonly Received[],
): Promise<InboundEvent[]> {
  if (received.length === 0) return []
  const first = firstOfEach(received)
  const appended = new Map<string, Emitted>()
  const known = new Map<string, KnownRow>()
  await withRetry(() =>
    database.transaction(
      async (tx) => {
        if (first.size > 1) await lockIds(tx, database.schemaName.lockKey('inbound'), [...first.keys()])
        const requests = [...first.values()].map(({ request }) => request)
        for (const emitted of await append(tx, requests)) appended.set(emitted.id, emitted)
        known.clear()
        for (const row of await selectKnown(tx, [...first.keys()])) known.set(row.id, row)
        refuseConflicts(received, (one) => isOther(known.get(one.request.id), one))
      },
      { lockTimeoutMs: PATIENCE_MS, statementTimeoutMs: PATIENCE_MS },
    ),
  )
  return received.map((one) => ({
    id: one.request.id,
    position: String(appended.get(one.request.id)!.position),
    duplicate: known.has(one.request.id) || first.get(one.request.id) !== one,
  }))
}

/** Somebody who appends the same id keeps this one waiting until he has committed. */
const PATIENCE_MS = 10_000

function firstOfEach(received: readonly Received[]): Map<string, Received> {
  const first = new Map<string, Received>()
  for (const one of received) if (!first.has(one.request.id)) first.set(one.request.id, one)
  refuseConflicts(received, (one) => first.get(one.request.id)!.digest !== one.digest)
  return first
}

function refuseConflicts(received: readonly Received[], isConflict: (one: Received) => boolean): void {
  const mistakes = received.flatMap((one, index): Mistake[] =>
    isConflict(one) ? [{ index, field: 'id', detail: 'was used before with other content' }] : [],
  )
  if (mistakes.length === 0) return
  throw new Refusal(409, 'An id stands for one event for ever. Nothing was appended.', { mistakes })
}

/** An event that retention has let go cannot be compared. */
function isOther(row: KnownRow | undefined, { digest }: Received): boolean {
  return (row?.kept ?? false) && row?.digest !== digest
}

/**
 * Two batches that append the same ids in another order would each hold what the other waits for. So batches take their
 * turn, in one order, by groups of ids: a lock for each id would fill the lock table of the server.
 */
async function lockIds(tx: Queryable, name: string, ids: readonly string[]): Promise<void> {
  const groups = new Set(ids.map((id) => Number.parseInt(id.slice(-4), 16) % LOCK_GROUPS))
  await tx.query(
    `select count(pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::text || ':' || of_ids, 0)))
       from unnest(($2::text)::integer[]) as of_ids`,
    [name, `{${[...groups].sort((one, other) => one - other).join(',')}}`],
  )
}

const LOCK_GROUPS = 64

interface KnownRow {
  readonly id: string
  readonly kept: boolean
  readonly digest: string | null
}

/**
 * Of these ids those that this transaction did not write itself. The number of a transaction comes again after four
 * thousand million others: then a repetition is called new, and still nothing is appended twice.
 */
async function selectKnown(tx: Queryable, ids: readonly string[]): Promise<KnownRow[]> {
  const { rows } = await tx.query<KnownRow>(
    `select known.id, e.position is not null as kept, e.metadata ->> 'source_digest' as digest
       from ${tx.schema}.event_ids known
       left join ${tx.schema}.events e
         on e.position = known.position
      where known.id = any (($1::text)::text[])
        and known.xmin <> pg_current_xact_id()::xid`,
    [`{${ids.join(',')}}`],
  )
  return rows
}
