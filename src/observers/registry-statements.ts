/** When observers began and what they were. */
import type { Queryable } from '../postgres/index.ts'

export interface RegisteredObserver {
  readonly observer: string
  readonly hash: string
  readonly actions: readonly string[]
  /** JSON, secrets as references; null when it is switched off. */
  readonly definition: unknown
}

/**
 * Writes down what is in force from `position` on: new actions begin there, changed observers get a new version, those
 * that are gone are closed. Answers where each action begins, as `observer/action`.
 */
export async function registerObservers(
  db: Queryable,
  observers: readonly RegisteredObserver[],
  position: bigint,
): Promise<Map<string, bigint>> {
  const { rows } = await db.query<{ observer: string; action: string; start: string }>(
    `with given as materialized (
       select * from jsonb_to_recordset(($1::text)::jsonb) as g(observer text, hash text, actions jsonb, definition jsonb)),
     latest as materialized (
       select distinct on (observer) observer, version, hash, definition
         from ${db.schema}.observer_versions
        order by observer, version desc),
     changed as (
       insert into ${db.schema}.observer_versions (observer, version, from_position, hash, definition)
       select g.observer, coalesce(l.version, 0) + 1, ($2::text)::bigint, g.hash, nullif(g.definition, 'null')
         from given g
         left join latest l on l.observer = g.observer
        where l.hash is distinct from g.hash or (l.definition is null) <> (nullif(g.definition, 'null') is null)
       on conflict do nothing),
     removed as (
       insert into ${db.schema}.observer_versions (observer, version, from_position, hash, definition)
       select l.observer, l.version + 1, ($2::text)::bigint, '', null
         from latest l
        where l.definition is not null and not exists (select from given g where g.observer = l.observer)
       on conflict do nothing),
     begun as (
       insert into ${db.schema}.observer_actions (observer, action, start_position)
       select g.observer, a.action, ($2::text)::bigint
         from given g, jsonb_array_elements_text(g.actions) as a(action)
       on conflict (observer, action) do nothing
       returning observer, action, start_position)
     select observer, action, start_position::text as start from begun
     union all
     select o.observer, o.action, o.start_position::text
       from ${db.schema}.observer_actions o
       join given g on g.observer = o.observer
      where not exists (select from begun b where b.observer = o.observer and b.action = o.action)`,
    [JSON.stringify(observers), position.toString()],
  )
  const known =
    rows.length === observers.flatMap(({ actions }) => actions).length ? rows : await selectStarts(db, observers)
  return new Map(known.map(({ observer, action, start }) => [`${observer}/${action}`, BigInt(start)]))
}

/** Somebody else registered one at the same moment: a snapshot taken before cannot show it. */
async function selectStarts(db: Queryable, observers: readonly RegisteredObserver[]) {
  const { rows } = await db.query<{ observer: string; action: string; start: string }>(
    `select observer, action, start_position::text as start
       from ${db.schema}.observer_actions
      where observer = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))`,
    [JSON.stringify(observers.map(({ observer }) => observer))],
  )
  return rows
}

export interface ObserverVersion {
  readonly observer: string
  readonly version: number
  readonly fromPosition: bigint
  readonly definition: unknown
}

/** What every observer was at a position; those that were off are left out. */
export async function selectVersionsAt(db: Queryable, position: bigint): Promise<ObserverVersion[]> {
  const { rows } = await db.query<{ observer: string; version: number; from: string; definition: string | null }>(
    `select distinct on (observer) observer, version, from_position::text as "from", definition::text as definition
       from ${db.schema}.observer_versions
      where from_position < ($1::text)::bigint
      order by observer, version desc`,
    [position.toString()],
  )
  return rows
    .filter(({ definition }) => definition !== null)
    .map(({ observer, version, from, definition }) => ({
      observer,
      version: Number(version),
      fromPosition: BigInt(from),
      definition: JSON.parse(definition!),
    }))
}

/** Counts a failure; answers how many it stands for when an alert is due now, else null. One per observer and time. */
export async function countForAlert(db: Queryable, observer: string, everySeconds: number): Promise<number | null> {
  const { rows } = await db.query<{ due: boolean; count: string }>(
    `insert into ${db.schema}.observer_alerts as a (observer, sent_at, count)
     values ($1::text, clock_timestamp(), 0)
     on conflict (observer) do update
       set count = case when a.sent_at < clock_timestamp() - make_interval(secs => ($2::text)::float8) then 0 else a.count + 1 end,
           sent_at = case when a.sent_at < clock_timestamp() - make_interval(secs => ($2::text)::float8)
             then clock_timestamp() else a.sent_at end
     returning count = 0 as due, (select o.count::text from ${db.schema}.observer_alerts o where o.observer = $1::text) as count`,
    [observer, String(everySeconds)],
  )
  const { due, count } = rows[0]!
  // The row as it was before: what was counted since the last alert, and this one.
  return due ? Number(count ?? 0) + 1 : null
}
