/** Upgrades, played from the dump of every version: the schema of a clean install, with the data that was there. */
import { describe, expect, test } from 'vitest'
import { assertSchemaUsable, type Database, loadMigrations, migrate } from '../../src/postgres/index.ts'
import { breaksOlder, fileNameOf } from '../../src/postgres/migrations.ts'
import { splitStatements } from '../../src/postgres/sql-text.ts'
import { connect, openTestDatabase } from '../support/database.ts'
import { schemaDumps } from '../support/schema-dumps.ts'
import { schemaSnapshot } from '../support/schema-snapshot.ts'

describe.each([18, 14] as const)('on Postgres %i', (major) => {
  test.each(schemaDumps())(
    'the schema of version $version becomes that of this build, and keeps its events',
    async ({ script }) => {
      const { db: clean } = await openTestDatabase({ major })
      await migrate(clean)
      const { db, url } = await openTestDatabase({ major })
      const client = await connect(url)
      // One by one: a concurrent index build cannot share a message with others.
      for (const statement of splitStatements(script)) await client.query(statement)
      await emitThree(db)
      const before = await functions(db)

      const { applied } = await migrate(db)

      await assertSchemaUsable(db)
      expect(await schemaSnapshot(db)).toEqual(await schemaSnapshot(clean))
      expect(await events(db)).toEqual(['note.first', 'note.second', 'note.third'])
      await emitThree(db)
      expect(await events(db)).toHaveLength(6)
      const added = (await loadMigrations()).filter((migration) => applied.includes(fileNameOf(migration)))
      if (!added.some(breaksOlder)) expect(await functions(db)).toMatchObject(before)
    },
  )
})

async function emitThree(db: Database): Promise<void> {
  await db.query(
    `select ${db.schema}.emit(t, 'note', '1', '{"n": 1}') from unnest(array['note.first', 'note.second', 'note.third']) t`,
  )
}

async function events(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ type: string }>(`select type from ${db.schema}.events order by position`)
  return rows.map(({ type }) => type)
}

/**
 * Signatures by name. Processes of the older version call these as long as the upgrade lets them run: a parameter, a
 * default or a return type that changes is a function with a new name.
 */
async function functions(db: Database): Promise<Record<string, string>> {
  const { rows } = await db.query<{ name: string; signature: string }>(
    `select proname::text as name,
            format('(%s) returns %s', pg_get_function_arguments(oid), pg_get_function_result(oid)) as signature
       from pg_proc where pronamespace = '${db.schema}'::regnamespace`,
  )
  return Object.fromEntries(rows.map(({ name, signature }) => [name, signature]))
}
