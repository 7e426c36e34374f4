/**
 * Least rights. An emitting role may call the append functions and nothing else: it cannot read payloads, touch the
 * sequence or change history. A running role may read the log and keep its own marks.
 */
import type { Queryable } from '../postgres/index.ts'
import { quoteIdentifier } from '../postgres/index.ts'

const EMIT_FUNCTIONS = [
  'append(text, text, text, text, jsonb, jsonb, timestamptz, jsonb)',
  'append_many(text[], text[], text[], text[], jsonb, jsonb, timestamptz[], jsonb[])',
  'emit(text, text, text, jsonb, jsonb, jsonb, text, timestamptz)',
  'new_id()',
]
const RUN_FUNCTIONS = [
  ...EMIT_FUNCTIONS,
  'check_log()',
  'log_identity()',
  'publish_frontier(integer, bigint, bigint)',
  'split_partitions()',
  'declare_stream(text, boolean)',
  'delivery_lane(text, text, text, text, smallint)',
  'add_deliveries(jsonb)',
  'busy_lanes(integer, integer)',
  'due_lanes(jsonb, integer)',
  'first_in_turn(integer, timestamptz, integer)',
  'grant_deliveries(text, text, integer, integer, integer)',
  'claim_deliveries(text, bigint, jsonb, integer, boolean, jsonb, integer, integer, jsonb)',
  'next_delivery_ms(jsonb)',
  'has_due_deliveries(jsonb)',
  'rotate_deliveries(bigint)',
  'workflow_events(text, text, bigint, bigint, bigint)',
  'workflow_load(text, text, boolean, bigint, bigint, integer, text, bigint)',
  'workflow_load_many(jsonb)',
  'workflow_commit(jsonb, jsonb)',
  'keep_run_days(interval)',
]
const READ_TABLES = [
  'events',
  'event_ids',
  'settings',
  'log_state',
  'epochs',
  'stream_types',
  'streams',
  'migrations',
  'positions',
  'delivery_lanes',
  'observer_runs',
  'workflow_snapshots',
]
/** Written once and never changed. */
const APPEND_TABLES = ['observer_actions', 'observer_versions', 'runs']
const WRITE_TABLES = [
  'idle_marks',
  'processes',
  'frontier_marks',
  'subscriptions',
  'subscription_partitions',
  'letters',
  'parked',
  'processed',
  'checkpoint_marks',
  'projection_states',
  'relay_batches',
  'deliveries',
  'delivery_workers',
  'delivery_pauses',
  'destinations',
  'observer_alerts',
  'push_subscriptions',
  'push_progress',
  'workflow_inputs',
  'input_observations',
  'schedules',
  'search_documents',
  'search_indexes',
]
/** Rows that somebody else makes, or that are there for good. */
const UPDATE_TABLES = ['delivery_state', 'workflow_instances']
const SEQUENCES = ['delivery_ids']

export async function grantEmit(db: Queryable, role: string): Promise<void> {
  const name = quoteIdentifier(role)
  await db.query(`grant usage on schema ${db.schema} to ${name}`)
  await db.query(`grant execute on function ${qualified(db, EMIT_FUNCTIONS)} to ${name}`)
}

/** True when the role may also see who holds the frontier back; that right only a superuser or its admin can give. */
export async function grantRun(db: Queryable, role: string): Promise<{ seesSessions: boolean }> {
  const name = quoteIdentifier(role)
  await db.query(`grant usage on schema ${db.schema} to ${name}`)
  await db.query(`grant execute on function ${qualified(db, RUN_FUNCTIONS)} to ${name}`)
  await db.query(`grant select on ${qualified(db, READ_TABLES)} to ${name}`)
  await db.query(`grant select, insert on ${qualified(db, APPEND_TABLES)} to ${name}`)
  await db.query(`grant select, insert, update, delete on ${qualified(db, WRITE_TABLES)} to ${name}`)
  await db.query(`grant select, update on ${qualified(db, UPDATE_TABLES)} to ${name}`)
  await db.query(`grant insert on ${qualified(db, ['audit'])} to ${name}`)
  await db.query(`grant usage on sequence ${qualified(db, SEQUENCES)} to ${name}`)
  try {
    await db.query(`grant pg_read_all_stats to ${name}`)
    return { seesSessions: true }
  } catch {
    return { seesSessions: false }
  }
}

function qualified(db: Queryable, names: readonly string[]): string {
  return names.map((name) => `${db.schema}.${name}`).join(', ')
}
