/** The one write that moves a checkpoint together with what its events leave behind. */
import { stringifyJson } from '../events/index.ts'
import { type Queryable, SERVER } from '../postgres/index.ts'
import type { LeftLane, LeftLetter, Leftovers, LeftRow } from './leftovers.ts'
import type { Checkpoint } from './progress.ts'
import { type Held, saveCheckpoint } from './statements.ts'

/** A write whose content stays as it is until its outcome is known. */
export interface Save {
  readonly number: bigint
  readonly checkpoint: Checkpoint
  /** JSON text; undefined when the checkpoint alone is written. */
  readonly left: string | undefined
}

/** True when it is written, now or by an earlier try whose answer was lost. False when the lease changed hands. */
export async function writeSave(db: Queryable, held: Held, { number, checkpoint, left }: Save): Promise<boolean> {
  if (left === undefined) {
    return (await saveCheckpoint(db, held, checkpoint, number)) || (await isSaved(db, held, number))
  }
  const { rows } = await db.query<{ saved: boolean }>(
    `select ${db.schema}.save_checkpoint($1::text, ($2::text)::bigint, $3::text, ($4::text)::bigint, ($5::text)::bigint,
                                         ($6::text)::int8multirange, $7::text, ($8::text)::jsonb) as saved`,
    [
      held.id,
      held.term.toString(),
      held.server,
      number.toString(),
      checkpoint.position.toString(),
      checkpoint.done,
      checkpoint.lastEventId,
      left,
    ],
    { repeated: true },
  )
  return rows[0]!.saved
}

/** A write that was repeated finds its own number. */
async function isSaved(db: Queryable, held: Held, number: bigint): Promise<boolean> {
  const { rows } = await db.query<{ saved: boolean }>(
    `select exists (
       select from ${db.schema}.subscription_partitions
        where id = $1::text and term = ($2::text)::bigint and save >= ($3::text)::bigint and ${SERVER} = $4::text) as saved`,
    [held.id, held.term.toString(), number.toString(), held.server],
  )
  return rows[0]!.saved
}

/** The JSON that `save_checkpoint` takes. Rows and letters name their lane by its place in a list. */
export function toLeftJson(all: readonly Leftovers[], settled: ReadonlyMap<bigint, readonly string[]>): string {
  const lanes = new Map<string, number>()
  const placeOf = ({ kind, name, destination, tenant, priority }: LeftLane) => {
    const text = JSON.stringify({ kind, name, destination, tenant, priority })
    const place = lanes.get(text) ?? lanes.size + 1
    lanes.set(text, place)
    return place
  }
  const rows = all.flatMap((left) => left.rows.map((row) => toRowJson(row, placeOf(row.lane))))
  const letters = all.flatMap((left) => left.letters.map((letter) => toLetterJson(letter, placeOf(letter.lane))))
  const alerts = all.flatMap((left) =>
    left.alerts.map(({ everySeconds, ...alert }) => ({ ...alert, every_seconds: everySeconds })),
  )
  const runs = all.flatMap((left) => left.runs)
  return (
    `{"lanes":[${[...lanes.keys()].join(',')}],"rows":[${rows.join(',')}],"letters":[${letters.join(',')}],` +
    `"alerts":${JSON.stringify(alerts)},"runs":${stringifyJson(runs, RUNS)},` +
    `"settled":${JSON.stringify(Object.fromEntries(settled))},${toRedrivenJson(all)}}`
  )
}

function toRedrivenJson(all: readonly Leftovers[]): string {
  const redriven = all.flatMap((left) => left.redriven ?? [])
  const letters = redriven.flatMap((one) => ('letter' in one ? one.letter : []))
  const waited = redriven.flatMap((one) => ('position' in one ? one.position : []))
  return `"resolved":[${letters.join(',')}],"waited":[${waited.join(',')}]`
}

const RUNS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 100, name: 'run records' }

function toRowJson({ owner, key, eventId, payload, delayMs, tried }: LeftRow, lane: number): string {
  const fields = JSON.stringify({
    lane,
    owner,
    key: key ?? undefined,
    ordered: key !== null || undefined,
    event_id: eventId,
    delay_ms: delayMs || undefined,
    attempts: tried?.attempts,
    since_first_ms: tried?.sinceFirstMs,
    error: tried?.error,
  })
  return `${fields.slice(0, -1)},"payload":${payload}}`
}

function toLetterJson(letter: LeftLetter, lane: number): string {
  const fields = JSON.stringify({
    lane,
    kind: letter.lane.kind,
    owner: letter.owner,
    key: letter.key,
    order_key: letter.orderKey ?? undefined,
    event_id: letter.eventId,
    position: letter.position.toString(),
    error: letter.error,
    attempts: letter.attempts,
    since_first_ms: letter.sinceFirstMs,
    ordered: letter.orderKey !== null && letter.payload !== null,
  })
  const payload = letter.payload === null ? '' : `,"payload":${letter.payload}`
  return `${fields.slice(0, -1)},"event":${letter.event}${payload}}`
}
