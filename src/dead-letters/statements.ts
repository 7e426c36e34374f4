import type { AftercommitEvent } from '../events/index.ts'
import {
  fromWire,
  parseJson,
  stringifyJson,
  toStoredEvent,
  toWire,
  Undecodable,
  type WireEvent,
  whyUndecodable,
} from '../events/index.ts'
import type { Parameter, Queryable } from '../postgres/index.ts'
import type { DeadLetter, LetterKind, LetterStatus } from './letter.ts'

/**
 * An event as it is copied beside a letter. Its own limits were checked when it was appended. An event that could not be
 * read is copied as the reason and the beginning of what was stored; the log keeps the whole until its retention ends.
 */
export function copyEvent(event: AftercommitEvent): string {
  const wire = toWire(event)
  const why = whyUndecodable(event)
  const copied =
    why === undefined ? wire : { ...wire, payload: toCopied(why), changes: null, previous: null, metadata: {} }
  return stringifyJson(copied, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'event' })
}

export function eventOfCopy(text: string): AftercommitEvent {
  const wire = parseJson(text, { maxDepth: 1_010 }) as WireEvent
  const { [UNDECODABLE]: reason, raw } = (wire.payload ?? {}) as Record<string, unknown>
  if (typeof reason === 'string') {
    return fromWire({ ...wire, payload: new Undecodable(reason, typeof raw === 'string' ? raw : '') })
  }
  // Redriven it may be tried several times, and each try is given a copy of its own.
  return toStoredEvent(fromWire(wire))
}

const UNDECODABLE = '$undecodable'

function toCopied({ reason, raw }: Undecodable): Record<string, string> {
  return { [UNDECODABLE]: reason, raw }
}

export interface LetterFilter {
  readonly kind?: LetterKind | undefined
  readonly owner?: string | undefined
  readonly key?: string | undefined
  readonly status?: LetterStatus | undefined
  /** Part of the error's code, name or message. */
  readonly error?: string | undefined
  readonly eventId?: string | undefined
  /** Effects and timers whose workflow asked for them with one of these events. */
  readonly askedBy?: readonly string[] | undefined
  readonly ids?: readonly bigint[] | undefined
  /** Untouched for at least this long. */
  readonly untouchedMs?: number | undefined
  /** Older than this letter, for the next page. */
  readonly before?: bigint | undefined
}

function conditions(filter: LetterFilter): { where: string; values: Parameter[] } {
  const values: Parameter[] = []
  const where: string[] = []
  const add = (condition: (parameter: string) => string, value: Parameter | undefined) => {
    if (value === undefined) return
    values.push(value)
    where.push(condition(`($${values.length}::text)`))
  }
  add((p) => `l.kind = ${p}`, filter.kind)
  add((p) => `l.owner = ${p}`, filter.owner)
  add((p) => `l.key = ${p}`, filter.key)
  add((p) => `l.status = ${p}`, filter.status)
  add((p) => `strpos(l.error::text, ${p}) > 0`, filter.error)
  add((p) => `l.event_id = ${p}`, filter.eventId)
  add(
    (p) =>
      `(l.delivery is not null and l.delivery ->> 'event_id' = any (array(select jsonb_array_elements_text(${p}::jsonb))))`,
    filter.askedBy && JSON.stringify(filter.askedBy),
  )
  add((p) => `l.id = any (${p}::bigint[])`, filter.ids && `{${filter.ids.join(',')}}`)
  add(
    (p) => `l.changed_at < clock_timestamp() - make_interval(secs => ${p}::float8)`,
    filter.untouchedMs === undefined ? undefined : String(filter.untouchedMs / 1_000),
  )
  add((p) => `l.id < ${p}::bigint`, filter.before?.toString())
  return { where: where.length > 0 ? `where ${where.join(' and ')}` : '', values }
}

export async function selectLetters(db: Queryable, filter: LetterFilter, limit: number): Promise<DeadLetter[]> {
  const { where, values } = conditions(filter)
  const { rows } = await db.query<LetterRow>(
    `select l.id::text as letter, l.kind, l.owner, l.key, l.event::text as event, l.error::text as error, l.attempts, l.status,
            l.who, l.reason, ${ms('l.first_attempt_at')} as first, ${ms('l.last_attempt_at')} as last,
            (select count(*)::text from ${db.schema}.parked p where p.owner = l.owner and p.key = l.key and l.parks) as waiting,
            (select count(*)::text
               from ${db.schema}.delivery_lanes own
               join ${db.schema}.delivery_lanes s on s.kind = own.kind and s.name = own.name
               join ${db.schema}.deliveries d on d.lane = s.lane
              where l.parks and l.status in ('dead', 'redriving') and own.lane = (l.delivery ->> 'lane')::integer
                and d.ordered and d.key = l.delivery ->> 'key' and d.letter is distinct from l.id) as behind
       from ${db.schema}.letters l
      ${where}
      order by l.id desc
      limit ${Math.trunc(limit)}`,
    values,
  )
  return rows.map(toLetter)
}

export async function countLetters(db: Queryable, filter: LetterFilter): Promise<number> {
  const { where, values } = conditions(filter)
  const { rows } = await db.query<{ count: string }>(
    `select count(*)::text as count from ${db.schema}.letters l ${where}`,
    values,
  )
  return Number(rows[0]!.count)
}

/** Marks dead letters; whoever owns them does the rest. A letter that is not dead is left alone. Answers what changed. */
export async function markLetters(
  db: Queryable,
  filter: LetterFilter,
  mark: { status: 'redriving' | 'discarded'; who: string; reason: string | null },
): Promise<{ ids: bigint[]; owners: string[] }> {
  const { where, values } = conditions({ ...filter, status: 'dead' })
  const at = values.length
  const { rows } = await db.query<{ letter: string; owner: string }>(
    `update ${db.schema}.letters l
        set status = $${at + 1}::text, redrives = l.redrives + ($${at + 1}::text = 'redriving')::integer, who = $${at + 2}::text, reason = $${at + 3}::text, changed_at = clock_timestamp()
      ${where}
    returning l.id::text as letter, l.owner`,
    [...values, mark.status, mark.who, mark.reason],
  )
  return { ids: rows.map((row) => BigInt(row.letter)), owners: [...new Set(rows.map((row) => row.owner))] }
}

interface LetterRow {
  letter: string
  kind: LetterKind
  owner: string
  key: string
  event: string
  error: string
  attempts: number
  status: LetterStatus
  who: string | null
  reason: string | null
  first: number
  last: number
  waiting: string
  behind: string
}

function toLetter(row: LetterRow): DeadLetter {
  return {
    id: BigInt(row.letter),
    kind: row.kind,
    owner: row.owner,
    key: row.key,
    event: eventOfCopy(row.event),
    error: JSON.parse(row.error),
    attempts: Number(row.attempts),
    firstAttemptAt: new Date(Number(row.first)),
    lastAttemptAt: new Date(Number(row.last)),
    status: row.status,
    waiting: Number(row.waiting) + Number(row.behind),
    who: row.who,
    reason: row.reason,
  }
}

function ms(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`
}

/** Marks letters of these owners that have been dead for so long and were not tried again so often. Answers how many. */
export async function redriveByItself(
  db: Queryable,
  kind: LetterKind,
  owners: readonly string[],
  { afterMs, max }: { afterMs: number; max: number },
): Promise<number> {
  const { rowCount } = await db.query(
    `update ${db.schema}.letters
        set status = 'redriving', redrives = redrives + 1, who = 'aftercommit', reason = 'auto_redrive',
            changed_at = clock_timestamp()
      where kind = $1::text
        and owner = any (array(select jsonb_array_elements_text(($2::text)::jsonb)))
        and status = 'dead'
        and redrives < ($4::text)::integer
        and changed_at < clock_timestamp() - make_interval(secs => ($3::text)::float8)`,
    [kind, JSON.stringify(owners), String(afterMs / 1_000), String(max)],
  )
  return rowCount
}
