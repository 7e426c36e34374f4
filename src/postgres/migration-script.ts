/** The SQL that `migrate` runs, as text: for its last step, for deploys that run SQL themselves, and for a dump of a version. */
import type { Database } from './database.ts'
import type { SchemaName } from './identifiers.ts'
import type { MigrateOptions } from './migrate.ts'
import { bookMigration, createBook, migrationSettings, selectBookExists } from './migration-statements.ts'
import { fileNameOf, isConcurrent, type Migration, renderMigration } from './migrations.ts'
import { type GrantedRole, grantStatements, selectGrantedRoles } from './roles.ts'
import { assertNotTooNew, readStatus, type SchemaDefinition, schemaDefinition } from './schema-status.ts'
import { bookFiles, fileStatements, type SqlFile, selectTriggerStates } from './sql-files.ts'

export const LOCK_TIMEOUT_MS = 800

type Grant = Pick<GrantedRole, 'role' | 'right'>

/** The parts of a schema that placing files must keep. */
export interface ThereAlready {
  /** How each trigger is enabled, by `table.trigger`. */
  readonly triggerStates: ReadonlyMap<string, string>
  readonly granted: readonly GrantedRole[]
}

const NOTHING_THERE: ThereAlready = { triggerStates: new Map(), granted: [] }

/** The files to put in place, the book of them, and the rights of every role that was granted some. */
export function placeSteps(
  definition: SchemaDefinition,
  schema: SchemaName,
  files: readonly SqlFile[],
  { triggerStates, granted }: ThereAlready,
): { name: string; statements: string[] }[] {
  return [
    ...files.map((file) => ({ name: `sql/${file.name}`, statements: fileStatements(file, schema, triggerStates) })),
    ...(files.length === 0 ? [] : [{ name: 'book of sql/', statements: [bookFiles(definition.sql, schema)] }]),
    ...granted.map(({ role, right }) => ({
      name: `of the rights of ${role}`,
      statements: grantStatements(definition, schema, role, right),
    })),
  ]
}

/** The text that `migrate` would run; empty when nothing is left to do. */
export async function migrationScript(
  db: Database,
  grants: readonly Grant[] = [],
  { lockTimeoutMs = LOCK_TIMEOUT_MS, ...given }: MigrateOptions = {},
): Promise<string> {
  const definition = await schemaDefinition(given)
  const { schemaName: schema } = db
  const status = await readStatus(db, definition, schema.name)
  assertNotTooNew(status, schema.name)
  const exists = await selectBookExists(db, schema.name)
  const there = exists.table
    ? { triggerStates: await selectTriggerStates(db, schema.name), granted: await selectGrantedRoles(db) }
    : NOTHING_THERE
  const isDue = status.pending.length + status.pendingFiles.length > 0
  const granted = there.granted.filter(({ version }) => isDue || version < Math.min(status.current, status.latest))
  return renderScript(definition, schema, {
    exists,
    migrations: definition.migrations.filter((migration) => status.pending.includes(fileNameOf(migration))),
    files: definition.sql.files.filter(({ name }) => status.pendingFiles.includes(name)),
    there: { ...there, granted },
    grants,
    lockTimeoutMs,
  })
}

/** The text that makes the schema of a build in an empty database. */
export function wholeScript(definition: SchemaDefinition, schema: SchemaName): string {
  return renderScript(definition, schema, {
    exists: { schema: false, table: false },
    migrations: definition.migrations,
    files: definition.sql.files,
    there: NOTHING_THERE,
    grants: [],
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  })
}

interface ScriptParts {
  readonly exists: { schema: boolean; table: boolean }
  readonly migrations: readonly Migration[]
  readonly files: readonly SqlFile[]
  readonly there: ThereAlready
  readonly grants: readonly Grant[]
  readonly lockTimeoutMs: number
}

function renderScript(definition: SchemaDefinition, schema: SchemaName, parts: ScriptParts): string {
  const { exists, migrations, files, there, grants, lockTimeoutMs } = parts
  const settings = migrationSettings(lockTimeoutMs)
  const blocks: string[][] = []
  if (!exists.table) blocks.push(['begin', ...settings, ...createBook(schema, exists), 'commit'])
  for (const migration of migrations) {
    const work = [renderMigration(migration, schema).trim().replace(/;$/, ''), bookMigration(migration, schema)]
    blocks.push(isConcurrent(migration) ? work : ['begin', ...settings, ...work, 'commit'])
  }
  if (files.length > 0 || there.granted.length > 0) {
    const steps = placeSteps(definition, schema, files, there)
    blocks.push(['begin', ...settings, ...steps.flatMap(({ statements }) => statements), 'commit'])
  }
  for (const { role, right } of grants) {
    blocks.push(['begin', ...grantStatements(definition, schema, role, right), 'commit'])
  }
  return blocks.map((block) => block.map((statement) => `${statement.trim().replace(/;$/, '')};\n`).join('')).join('\n')
}
