/** The fate of many events at once, one mark per reaction: for a list of events. A few statements, whatever their number. */
import type { DeadLetter, DeadLetters } from '../dead-letters/index.ts'
import type { Deliveries } from '../delivery/index.ts'
import { compilePatterns } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Database, Queryable } from '../postgres/index.ts'
import type { ReactionState } from './receipt.ts'

export interface Mark {
  /** `sales`, `big_order/webhook`, `effect pay`. */
  readonly name: string
  readonly state: ReactionState
}

export interface StripParts {
  readonly database: Database
  readonly deliveries: Pick<Deliveries, 'list'>
  readonly deadLetters: Pick<DeadLetters, 'list'>
}

/** By event id. At most 1,000 deliveries and dead letters are looked at for all events together. */
export async function readStrips(events: readonly AnyEvent[], parts: StripParts): Promise<Map<string, Mark[]>> {
  const ids = events.map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const [readers, runs, rows, letters, works] = await Promise.all([
    selectReaders(parts.database),
    selectEndedActions(parts.database, ids),
    parts.deliveries.list({ eventIds: ids, limit: 1_000 }),
    parts.deadLetters.list({ eventIds: ids, limit: 1_000 }),
    parts.deadLetters.list({ askedBy: ids, limit: 1_000 }),
  ])
  const strips = new Map(ids.map((id) => [id, new Map<string, ReactionState>()]))
  for (const event of events) {
    const marks = strips.get(event.id)!
    for (const reader of readers) {
      if (!reader.matches(event)) continue
      marks.set(reader.id, reader.hasFinished(event.position) ? 'done' : 'not_yet')
    }
  }
  for (const { eventId, name, isDone } of runs) strips.get(eventId)?.set(name, isDone ? 'done' : 'unrecorded')
  for (const letter of letters) strips.get(letter.event.id)?.set(nameOf(letter), stateOf(letter))
  for (const letter of works) strips.get(letter.event.metadata.causationId ?? '')?.set(nameOf(letter), stateOf(letter))
  for (const { eventId, kind, name, state } of rows) {
    if (eventId !== null) strips.get(eventId)?.set(kind === 'action' ? name : `${kind} ${name}`, state)
  }
  return new Map([...strips].map(([id, marks]) => [id, [...marks].map(([name, state]) => ({ name, state }))]))
}

function nameOf({ kind, owner, event }: DeadLetter): string {
  return kind === 'subscription' || kind === 'action' ? owner : `${kind} ${event.type}`
}

function stateOf({ status }: DeadLetter): ReactionState {
  return status === 'resolved' ? 'done' : status
}

interface Reader {
  readonly id: string
  matches(event: AnyEvent): boolean
  hasFinished(position: bigint): boolean
}

async function selectReaders(db: Queryable): Promise<Reader[]> {
  const { rows } = await db.query<{ id: string; definition: string; pos: string; done: string }>(
    `select s.id, s.definition::text as definition, p.position::text as pos, p.done::text as done
       from ${db.schema}.subscriptions s
       join ${db.schema}.subscription_partitions p on p.id = s.id
      where s.kind <> 'observers'
      order by s.id`,
  )
  return rows.map(({ id, definition, pos, done }) => {
    const { on = ['*'], tenant = null } = JSON.parse(definition) as { on?: string[]; tenant?: string | null }
    const takes = compilePatterns(on)
    const position = BigInt(pos)
    const ranges = [...done.matchAll(/\[(\d+),(\d+)\)/g)].map(([, low, high]) => [BigInt(low!), BigInt(high!)] as const)
    return {
      id,
      matches: (event) => (tenant === null || tenant === event.tenant) && takes(event.type),
      hasFinished: (at) => at <= position || ranges.some(([low, high]) => at >= low && at < high),
    }
  })
}

async function selectEndedActions(
  db: Queryable,
  ids: readonly string[],
): Promise<{ eventId: string; name: string; isDone: boolean }[]> {
  const { rows } = await db.query<{ event_id: string; name: string; done: boolean }>(
    `select r.event_id, r.owner || '/' || (a ->> 'name') as name, bool_or(a ->> 'outcome' = 'success') as done
       from ${db.schema}.runs r
      cross join lateral jsonb_array_elements(r.actions) a
      where r.event_id = any (array(select jsonb_array_elements_text(($1::text)::jsonb))) and r.kind = 'observer'
      group by r.event_id, r.owner, a ->> 'name'
      limit 5000`,
    [JSON.stringify(ids)],
  )
  return rows.map(({ event_id, name, done }) => ({ eventId: event_id, name, isDone: done }))
}
