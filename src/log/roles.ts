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
]
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
]

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
  await db.query(`grant select, insert, update, delete on ${qualified(db, WRITE_TABLES)} to ${name}`)
  await db.query(`grant insert on ${qualified(db, ['audit'])} to ${name}`)
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
