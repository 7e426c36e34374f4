/**
 * Least rights. An emitting role may call the append functions and nothing else: it cannot read payloads, touch the
 * sequence or change history. A running role may read the log and keep its own marks. Rights on functions and views
 * stand in the first line of their file in sql/; rights on tables stand here.
 *
 * The database remembers who was granted what, so that `migrate` gives the rights again on what it adds.
 */
import type { Database } from './database.ts'
import { quoteIdentifier, quoteLiteral, type SchemaName } from './identifiers.ts'
import type { Queryable } from './queryable.ts'
import { latestOf, type SchemaDefinition, schemaDefinition } from './schema-status.ts'
import type { SqlFile } from './sql-files.ts'

/** `read` is the events of one tenant at a time, by the view `tenant_events` and nothing else. */
export type Right = 'emit' | 'run' | 'read'

/** The rights of a running role on each table. A table that is not listed is the owner's alone. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  select: [
    'events',
    'event_ids',
    'settings',
    'log_state',
    'epochs',
    'stream_types',
    'streams',
    'migrations',
    'sql_files',
    'positions',
    'delivery_lanes',
    'workflow_snapshots',
  ],
  insert: ['audit'],
  // Written once and never changed.
  'select, insert': ['subscription_versions', 'observer_actions', 'observer_versions', 'runs'],
  // Rows that another role makes, or that are there for good.
  'select, update': ['delivery_state', 'workflow_instances'],
  'select, insert, update, delete': [
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
  ],
}
const SEQUENCES = ['delivery_ids']

/** Statements that give a role its rights on everything that a build knows. */
export function grantStatements(
  { migrations, sql: { files } }: SchemaDefinition,
  schema: SchemaName,
  role: string,
  right: Right,
): string[] {
  const to = quoteIdentifier(role)
  const own = (names: readonly string[]) => names.map((name) => `${schema.quoted}.${quoteIdentifier(name)}`).join(', ')
  const objects = (kind: SqlFile['kind'], wanted: readonly SqlFile['grants'][]) =>
    files.filter((file) => file.kind === kind && wanted.includes(file.grants)).map(({ object }) => object!)
  const remember =
    `insert into ${schema.quoted}.granted_roles (role, "right", version)\n` +
    // An older build gives no rights on what a newer one has added, and leaves that to the newer one.
    `select ${quoteLiteral(role)}, '${right}', least(max(version), ${latestOf(migrations)}) from ${schema.quoted}.migrations\n` +
    'on conflict (role, "right") do update set version = excluded.version'
  const usage = `grant usage on schema ${schema.quoted} to ${to}`
  if (right === 'read') return [usage, `grant select on ${own(['tenant_events'])} to ${to}`, remember]
  const execute = (wanted: readonly SqlFile['grants'][]) =>
    `grant execute on routine ${own([...objects('function', wanted), ...objects('procedure', wanted)])} to ${to}`
  if (right === 'emit') return [usage, execute(['emit']), remember]
  return [
    usage,
    execute(['emit', 'run', 'read']),
    `grant select on ${own(objects('view', ['run', 'read']))} to ${to}`,
    ...Object.entries(TABLES).map(([rights, tables]) => `grant ${rights} on ${own(tables)} to ${to}`),
    `grant usage on sequence ${own(SEQUENCES)} to ${to}`,
    remember,
  ]
}

export interface GrantedRole {
  readonly role: string
  readonly right: Right
  /** Of the schema when the rights were given, as far as the build that gave them knew it. */
  readonly version: number
}

/** Roles that were granted rights and still exist. */
export async function selectGrantedRoles(db: Queryable): Promise<GrantedRole[]> {
  const { rows } = await db.query<GrantedRole>(
    `select g.role, g."right", g.version
       from ${db.schema}.granted_roles g
       join pg_catalog.pg_roles r on r.rolname = g.role
      order by g.role, g."right"`,
  )
  return rows
}

export async function grantRole(db: Database, role: string, right: Right): Promise<void> {
  const definition = await schemaDefinition()
  await db.transaction(async (tx) => {
    for (const statement of grantStatements(definition, db.schemaName, role, right)) await tx.query(statement)
  })
}

/** The role sees sessions of others, and so who holds the log back. Only a superuser or an admin of the right can give it. */
export async function grantMonitor(db: Queryable, role: string): Promise<void> {
  await db.query(`grant pg_read_all_stats to ${quoteIdentifier(role)}`)
}
