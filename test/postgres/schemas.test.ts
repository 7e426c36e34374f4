/** The dump of this version in test/schemas is what this build would make. */
import { expect, test } from 'vitest'
import { loadMigrations, loadSqlFiles, SCHEMA_LEVEL, schemaName, wholeScript } from '../../src/postgres/index.ts'
import { breaksOlder } from '../../src/postgres/migrations.ts'
import { VERSION } from '../../src/version.ts'
import { schemaDumps } from '../support/schema-dumps.ts'

test('the schema of this build equals its dump in test/schemas', async () => {
  const definition = { migrations: await loadMigrations(), sql: await loadSqlFiles() }
  const { version } = definition.sql
  const dump = schemaDumps().find((one) => one.version === version)
  const isSame = dump?.script === wholeScript(definition, schemaName('aftercommit'))
  const how =
    dump === undefined || dump.release === VERSION
      ? `The SQL of this build differs from its dump in test/schemas: run \`npm run schema\` and commit what it writes.`
      : `The SQL changed since release ${dump.release}: raise sql/version, run \`npm run schema\` and commit what it writes.`
  expect(isSame, how).toBe(true)
})

test('dumps of test/schemas are numbered from 1 without gaps and say which release wrote them', () => {
  const dumps = schemaDumps()
  expect(dumps.map(({ version }) => version)).toEqual(dumps.map((_, index) => index + 1))
  expect(dumps.filter(({ release }) => release === '')).toEqual([])
})

test('the schema level that processes state is the last migration that older ones refuse', async () => {
  const breaking = (await loadMigrations()).filter(breaksOlder)
  expect(SCHEMA_LEVEL, 'set SCHEMA_LEVEL in src/postgres/schema-level.ts').toBe(breaking.at(-1)?.version ?? 0)
})
