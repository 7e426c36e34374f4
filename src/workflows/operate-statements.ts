/** What is changed beside the steps: pauses, letters that were dealt with, and what has been kept long enough. */
import { hasOpenLetter } from '../dead-letters/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { HELD } from './statements.ts'
import type { InstanceRef, Standing } from './store.ts'

/** How it stands with the life that asked for an effect. */
export async function selectStanding(db: Queryable, { type, id }: InstanceRef, generation: number): Promise<Standing> {
  const { rows } = await db.query<{ over: boolean; paused: boolean }>(
    `select completed_at is not null or generation <> ($3::text)::integer as over, paused
       from ${db.schema}.workflow_instances
      where type = $1::text and id = $2::text`,
    [type, id, String(generation)],
  )
  const [found] = rows
  if (found?.over) return 'over'
  return found?.paused ? 'paused' : 'open'
}

/** Under the lock of its steps. False when there is nothing to change. */
export async function setPaused(db: Queryable, { type, id }: InstanceRef, paused: boolean): Promise<boolean> {
  await db.query(`select from ${db.schema}.workflow_load($1::text, $2::text, true, 0, 0, 0)`, [type, id])
  const { rowCount } = await db.query(
    `update ${db.schema}.workflow_instances
        set paused = $3::boolean
      where type = $1::text and id = $2::text and completed_at is null and paused <> $3::boolean`,
    [type, id, paused],
  )
  if (rowCount === 0) return false
  // What is under way goes on; the rest is not due any more, or again.
  await db.query(
    `update ${db.schema}.deliveries d
        set segment = 0,
            run_at = case when $3::boolean then '${HELD}'::timestamptz
                          else coalesce(to_timestamp((d.payload ->> 'due')::double precision / 1000), clock_timestamp()) end
       from ${db.schema}.delivery_lanes l
      where l.lane = d.lane
        and l.kind in ('effect', 'timer')
        and (l.name = $1::text or starts_with(l.name, $1::text || '/'))
        and d.owner = $1::text
        and d.key = $2::text
        and d.token is null
        -- One in order that was under way when its instance was paused waits for another time.
        and ((d.run_at = '${HELD}') <> $3::boolean or d.ordered and l.kind = 'timer' and not $3::boolean)`,
    [type, id, paused],
  )
  return true
}

/**
 * Outcomes of inputs that callers brought go after a time, those that events of the log brought with their events: until then
 * the subscription may be set back to them. None goes while a letter of the workflow is open: its redrive carries the id again.
 */
export async function pruneInputs(db: Queryable, keepSeconds: number): Promise<void> {
  const isSettled = `not ${hasOpenLetter(db, 'subscription', { owner: `'workflow:' || i.type` })}`
  const old = `i.at < clock_timestamp() - make_interval(secs => ($1::text)::float8)`
  await db.query(`delete from ${db.schema}.workflow_inputs i where i.position is null and ${old} and ${isSettled}`, [
    String(keepSeconds),
  ])
  await db.query(
    `delete from ${db.schema}.workflow_inputs i
      where i.position < (select kept_from from ${db.schema}.log_state) and ${old} and ${isSettled}`,
    [String(keepSeconds)],
  )
}

/** Each goes when the process that wrote it said: another one may be set to a shorter time. */
export async function pruneObservations(db: Queryable): Promise<void> {
  await db.query(`delete from ${db.schema}.input_observations where keep_until < clock_timestamp()`)
  await db.query(
    `delete from ${db.schema}.input_observations
      where keep_until is null and at < clock_timestamp() - interval '30 days'`,
  )
}
