/**
 * Appends what was received, all of it or nothing. Ids are chosen, so a repetition finds its event in the log; the same
 * id with other content is refused.
 */
import { isDeepStrictEqual } from 'node:util'
import { type EmitRequest, type Emitted, EventIdTakenError } from '../log/index.ts'
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
  const ids = received.map(({ id }) => id)
  const { emitted, known } = await withRetry(() =>
    database.transaction(
      async (tx) => {
        if (ids.length > 1) await lockIds(tx, ids)
        const appended = await append(tx, received).catch((error) => {
          throw error instanceof EventIdTakenError ? conflict(error, received) : error
        })
        return { emitted: appended, known: await selectKnown(tx, ids) }
      },
      { lockTimeoutMs: PATIENCE_MS, statementTimeoutMs: PATIENCE_MS },
    ),
  )
  return emitted.map(({ id, position }, index) => ({
    id,
    position: String(position),
    duplicate: known.has(id) || ids.indexOf(id) !== index,
  }))
}

/** A sender that appends the same id keeps this one waiting until it has committed. */
const PATIENCE_MS = 10_000

function conflict({ eventId }: EventIdTakenError, received: readonly Received[]): Refusal {
  const first = received.find(({ id }) => id === eventId)
  const isOther = (one: Received) => !isDeepStrictEqual(contentOf(one), contentOf(first!))
  const isTakenWithin = received.some((one) => one.id === eventId && isOther(one))
  const mistakes = received.flatMap((one, index): Mistake[] =>
    one.id === eventId && (!isTakenWithin || isOther(one))
      ? [{ index, field: 'id', detail: 'was used before with other content' }]
      : [],
  )
  return new Refusal(409, 'An id stands for one event for ever. Nothing was appended.', { mistakes })
}

/** What the database compares: neither times nor metadata. */
function contentOf({ type, aggregate, payload, changes }: Received): unknown {
  return { type, aggregate, payload, changes }
}

async function lockIds(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(`select ${tx.schema}.lock_ids(($1::text)::text[])`, [`{${ids.join(',')}}`])
}

/**
 * Of these ids those that this transaction did not write itself. The number of a transaction comes again after four
 * thousand million others: then a repetition is called new, and still nothing is appended twice.
 */
async function selectKnown(tx: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ id: string }>(
    `select id
       from ${tx.schema}.event_ids
      where id = any (($1::text)::text[])
        and xmin <> pg_current_xact_id()::xid`,
    [`{${ids.join(',')}}`],
  )
  return new Set(rows.map(({ id }) => id))
}
