/** Looking at dead letters. */
import type { Parameter, Queryable } from '../postgres/index.ts'
import { eventOfCopy } from './event-copy.ts'
import type { DeadLetter, LetterKind, LetterStatus } from './letter.ts'

export interface LetterFilter {
  readonly kind?: LetterKind | undefined
  readonly owner?: string | undefined
  readonly key?: string | undefined
  readonly status?: LetterStatus | undefined
  /** Part of the error's code, name or message. */
  readonly error?: string | undefined
  readonly eventId?: string | undefined
  readonly eventIds?: readonly string[] | undefined
  /** Effects and timers whose workflow asked for them with one of these events. */
  readonly askedBy?: readonly string[] | undefined
  readonly ids?: readonly bigint[] | undefined
  /** Untouched for at least this long. */
  readonly untouchedMs?: number | undefined
  /** Older than this letter, for the next page. */
  readonly before?: bigint | undefined
}

/** The condition of a filter, over letters as `l`. */
export function conditions(filter: LetterFilter): { where: string; values: Parameter[] } {
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
    (p) => `l.event_id = any (array(select jsonb_array_elements_text(${p}::jsonb)))`,
    filter.eventIds && JSON.stringify(filter.eventIds),
  )
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

/** Exact, or up to `atMost` where more are not of interest: a count of a million costs seconds. */
export async function countLetters(db: Queryable, filter: LetterFilter, atMost?: number): Promise<number> {
  const { where, values } = conditions(filter)
  const { rows } = await db.query<{ count: string }>(
    atMost === undefined
      ? `select count(*)::text as count from ${db.schema}.letters l ${where}`
      : `select count(*)::text as count from (select from ${db.schema}.letters l ${where} limit ${Math.trunc(atMost)}) l`,
    values,
  )
  return Number(rows[0]!.count)
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

/** Letters that wait, by whose they are: subscriptions, also those that have none, and whoever else has some. */
export interface WaitingLetters {
  readonly kind: string
  readonly owner: string
  readonly count: number
}

export async function countWaitingLetters(db: Queryable): Promise<WaitingLetters[]> {
  const { rows } = await db.query<{ kind: string; owner: string; count: string }>(
    `select kind, owner, coalesce(l.count, 0)::text as count
       from (select 'subscription' as kind, id as owner from ${db.schema}.subscriptions) s
       full join (
         select kind, owner, count(*) as count
           from ${db.schema}.letters
          where status in ('dead', 'redriving')
          group by kind, owner) l using (kind, owner)
      order by kind, owner`,
  )
  return rows.map(({ kind, owner, count }) => ({ kind, owner, count: Number(count) }))
}

/** Dead letters of a kind that are not over, by owner. */
export async function countOpenByOwner(db: Queryable, kind: LetterKind): Promise<Map<string, number>> {
  const { rows } = await db.query<{ owner: string; count: string }>(
    `select owner, count(*)::text as count
       from ${db.schema}.letters
      where kind = $1::text and status in ('dead', 'redriving')
      group by owner`,
    [kind],
  )
  return new Map(rows.map(({ owner, count }) => [owner, Number(count)]))
}

/** Dead letters of one cause. */
export interface LetterCause {
  readonly kind: LetterKind
  readonly owner: string
  readonly code: string
  readonly message: string
  /** Among the newest 10,000 dead letters. */
  readonly count: number
  /** Keys whose later events wait behind one of them. */
  readonly parkedKeys: number
  readonly oldest: Date
  readonly newest: Date
  /** The newest of them. */
  readonly sample: bigint
}

/** Why the newest 10,000 dead letters died, the most frequent cause first. Digits of a message do not make another cause. */
export async function selectCauses(db: Queryable, limit: number): Promise<LetterCause[]> {
  const { rows } = await db.query<Record<string, string | number>>(
    `with newest as materialized (
       select l.id, l.kind, l.owner, l.key, l.parks, l.last_attempt_at, coalesce(l.error ->> 'code', l.error ->> 'name', '') as code,
              left(l.error ->> 'message', 300) as message
         from ${db.schema}.letters l
        where l.status = 'dead'
        order by l.id desc
        limit 10000)
     select kind, owner, code, (array_agg(message order by id desc))[1] as message, count(*)::integer as count,
            (count(distinct key) filter (where parks))::integer as keys, ${ms('min(last_attempt_at)')} as oldest,
            ${ms('max(last_attempt_at)')} as newest, max(id)::text as sample
       from newest
      group by kind, owner, code, regexp_replace(message, '[0-9]+', '0', 'g')
      order by count(*) desc, max(id) desc
      limit ${Math.trunc(limit)}`,
  )
  return rows.map((row) => ({
    kind: row.kind as LetterKind,
    owner: String(row.owner),
    code: String(row.code),
    message: String(row.message ?? ''),
    count: Number(row.count),
    parkedKeys: Number(row.keys),
    oldest: new Date(Number(row.oldest)),
    newest: new Date(Number(row.newest)),
    sample: BigInt(row.sample!),
  }))
}
