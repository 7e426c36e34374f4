/** When observers began and what they were: written by whoever reads with them, and by nobody else. */

import { DEFAULT_GROUP } from '../configuration/index.ts'
import { type DestinationLimits, saveLimits } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import type { Database, Queryable } from '../postgres/index.ts'
import type { LeftAlert } from '../subscriptions/index.ts'

export interface RegisteredObserver {
  readonly observer: string
  readonly hash: string
  readonly actions: readonly string[]
  /** JSON, secrets as references; null when it is switched off. */
  readonly definition: unknown
}

export interface Rules {
  readonly group: string
  /** Under which subscription they are read with, and as which version of it. */
  readonly subscription: string
  readonly version: string
  readonly observers: readonly RegisteredObserver[]
  readonly limits: readonly DestinationLimits[]
  /** The head of the log when they were made: what is new begins no earlier. */
  readonly head: bigint
}

/**
 * Writes down that these rules are in force: one transaction, with the subscription locked, so that nobody puts others in
 * force meanwhile. Answers where each action begins, as `observer/action`; undefined when other rules are in force, or none
 * yet, and then nothing was written.
 */
export function putInForce(database: Database, rules: Rules): Promise<ReadonlyMap<string, bigint> | undefined> {
  return database.transaction(
    async (tx) => {
      if (!(await lockSubscription(tx, rules.subscription, rules.version))) return undefined
      await assertOwn(tx, rules)
      await saveLimits(tx, rules.limits)
      const judged = await selectJudged(tx, rules.subscription)
      await insertVersions(tx, rules, judged)
      await insertStarts(tx, rules, judged)
      // A statement of its own: it also sees what somebody else has begun meanwhile.
      return selectStarts(tx, rules.observers)
    },
    { isolation: 'read committed' },
  )
}

/** Deliveries, letters and records go by the name of an observer, so no two groups may have one of the same name. */
async function assertOwn(tx: Queryable, { group, observers }: Rules): Promise<void> {
  const { rows } = await tx.query<{ observer: string; other: string }>(
    `select v.observer, ${GROUP} as other
       from (select distinct on (observer) observer, definition
               from ${tx.schema}.observer_versions
              where observer = any (array(select jsonb_array_elements_text(($2::text)::jsonb)))
              order by observer, version desc) v
      where v.definition is not null and ${GROUP} <> $1::text
      order by v.observer
      limit 1`,
    [group, JSON.stringify(observers.map(({ observer }) => observer))],
  )
  const [taken] = rows
  if (!taken) return
  throw new AftercommitError(
    'BAD_OPTION',
    `Observer "${taken.observer}" is in force in group "${taken.other}", so group "${group}" was not put in force. ` +
      'Rename one of the two, or remove it from the other group first.',
  )
}

/** Of a version that is in force; one that was removed has none. */
const GROUP = `coalesce(v.definition ->> 'group', '${DEFAULT_GROUP}')`

async function lockSubscription(tx: Queryable, id: string, version: string): Promise<boolean> {
  const { rows } = await tx.query(
    `select from ${tx.schema}.subscriptions where id = $1::text and definition ->> 'version' = $2::text for no key update`,
    [id, version],
  )
  return rows.length > 0
}

/** Above it nothing was judged by the rules before: they cannot move the checkpoint any more. */
async function selectJudged(tx: Queryable, id: string): Promise<bigint> {
  const { rows } = await tx.query<{ judged: string }>(
    `select max(greatest(position, upper(done) - 1))::text as judged from ${tx.schema}.subscription_partitions where id = $1::text`,
    [id],
  )
  return BigInt(rows[0]!.judged)
}

/**
 * Changed observers get a new version, those that are gone are closed: from the first event that was not judged by the
 * version before. A new one is not asked about what was there before it.
 */
async function insertVersions(tx: Queryable, { group, observers, head }: Rules, judged: bigint): Promise<void> {
  await tx.query(
    `with given as materialized (
       select * from jsonb_to_recordset(($1::text)::jsonb) as g(observer text, hash text, definition jsonb)),
     latest as materialized (
       select distinct on (observer) observer, version, from_position, hash, definition
         from ${tx.schema}.observer_versions
        order by observer, version desc),
     changed as (
       insert into ${tx.schema}.observer_versions (observer, version, from_position, hash, definition)
       select g.observer, coalesce(l.version, 0) + 1, greatest(($2::text)::bigint, coalesce(l.from_position, ($3::text)::bigint)),
              g.hash, nullif(g.definition, 'null')
         from given g
         left join latest l on l.observer = g.observer
        where l.hash is distinct from g.hash or (l.definition is null) <> (nullif(g.definition, 'null') is null))
     insert into ${tx.schema}.observer_versions (observer, version, from_position, hash, definition)
     select v.observer, v.version + 1, greatest(($2::text)::bigint, v.from_position), '', null
       from latest v
      where v.definition is not null and ${GROUP} = $4::text
        and not exists (select from given g where g.observer = v.observer)`,
    [JSON.stringify(observers), judged.toString(), head.toString(), group],
  )
}

async function insertStarts(tx: Queryable, { observers, head }: Rules, judged: bigint): Promise<void> {
  await tx.query(
    `insert into ${tx.schema}.observer_actions (observer, action, start_position)
     select g.observer, a.action, greatest(($2::text)::bigint, ($3::text)::bigint)
       from jsonb_to_recordset(($1::text)::jsonb) as g(observer text, actions jsonb),
            jsonb_array_elements_text(g.actions) as a(action)
     on conflict (observer, action) do nothing`,
    [JSON.stringify(observers), judged.toString(), head.toString()],
  )
}

async function selectStarts(
  tx: Queryable,
  observers: readonly RegisteredObserver[],
): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await tx.query<{ observer: string; action: string; start: string }>(
    `select observer, action, start_position::text as start
       from ${tx.schema}.observer_actions
      where observer = any (array(select jsonb_array_elements_text(($1::text)::jsonb)))`,
    [JSON.stringify(observers.map(({ observer }) => observer))],
  )
  return new Map(rows.map(({ observer, action, start }) => [`${observer}/${action}`, BigInt(start)]))
}

/** Which of these observers are not in force, or are in force as something else. */
export async function selectLost(db: Queryable, observers: readonly RegisteredObserver[]): Promise<string[]> {
  const { rows } = await db.query<{ observer: string }>(
    `select g.observer
       from jsonb_to_recordset(($1::text)::jsonb) as g(observer text, hash text)
       left join (select distinct on (observer) observer, hash, definition
                    from ${db.schema}.observer_versions
                   order by observer, version desc) v on v.observer = g.observer
      where v.definition is null or v.hash <> g.hash
      order by g.observer`,
    [JSON.stringify(observers.map(({ observer, hash }) => ({ observer, hash })))],
  )
  return rows.map(({ observer }) => observer)
}

export interface StrayProcess {
  readonly host: string
  readonly pid: number
  readonly observers: readonly string[]
}

/** Live processes with rules that were in force once and are not any more. */
export async function selectStrayProcesses(db: Queryable): Promise<StrayProcess[]> {
  const { rows } = await db.query<{ host: string; pid: number; observers: string }>(
    `select p.host, p.pid, jsonb_agg(distinct v.observer)::text as observers
       from ${db.schema}.live_leases g
       join ${db.schema}.delivery_workers w on w.worker = g.lease
       join ${db.schema}.processes p on p.process = g.process
       cross join lateral jsonb_to_recordset(w.names) as n(kind text, name text)
       join (select distinct on (observer) observer, definition
               from ${db.schema}.observer_versions
              order by observer, version desc) v on v.observer = split_part(n.name, '/', 1)
      where n.kind = 'action' and v.definition is null
      group by p.process, p.host, p.pid
      order by p.host, p.pid`,
  )
  return rows.map(({ host, pid, observers }) => ({ host, pid: Number(pid), observers: JSON.parse(observers) }))
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

/** Counts a failure; if no alert about the same was added for a while, adds one delivery per channel. */
export async function raiseAlert(db: Queryable, { about, text, channels, everySeconds }: LeftAlert): Promise<void> {
  await db.query(`select ${db.schema}.raise_alert(($1::text)::jsonb)`, [
    JSON.stringify({ about, text, channels, every_seconds: everySeconds }),
  ])
}
