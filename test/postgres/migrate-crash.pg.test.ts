import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import {
  checksumOf,
  loadMigrations,
  type Migration,
  migrate,
  type SqlFile,
  type SqlFiles,
  schemaStatus,
} from '../../src/postgres/index.ts'
import { buildPackage } from '../support/build.ts'
import { openTestDatabase } from '../support/database.ts'
import { spawnScript } from '../support/processes.ts'
import { schemaSnapshot } from '../support/schema-snapshot.ts'

const MIGRATOR = fileURLToPath(new URL('./migrator.mjs', import.meta.url))

/** Each file takes a moment before and after its work, so that a kill finds every kind of half-done. */
const MIGRATIONS: Migration[] = [
  ...[1, 2, 3, 4].map((version) => {
    const work = `create table :schema.t${version} (id integer primary key); insert into :schema.t${version} values (1);`
    return toMigration(version, `-- older: keep\nselect pg_sleep(0.02); ${work} select pg_sleep(0.02);`)
  }),
  toMigration(
    5,
    '-- concurrent\n-- older: keep\ncreate index concurrently t1_again on :schema.t1 (id); select pg_sleep(0.02);',
  ),
  toMigration(6, '-- older: keep\nselect pg_sleep(0.02); alter table :schema.t2 add extra integer not null default 1;'),
]

/** Functions, and data between them that takes a moment. */
const SQL: SqlFiles = {
  version: 1,
  files: [1, 2, 3].flatMap((n) => [
    toFile('data', `nap_${n}`, 'select pg_sleep(0.02)'),
    toFile(
      'function',
      `f${n}`,
      `create or replace function :schema.f${n}() returns integer language sql as 'select ${n}'`,
    ),
  ]),
}
const DEFINITION = { migrations: MIGRATIONS, sql: SQL }

function toFile(kind: 'data' | 'function', name: string, sql: string): SqlFile {
  const object = kind === 'function' ? { object: name } : {}
  return { name: `crash/${name}`, kind, ...object, grants: 'none', sql, hash: checksumOf(sql) }
}

function toMigration(version: number, sql: string): Migration {
  return { version, name: `m${version}`, sql, checksum: checksumOf(sql) }
}

beforeAll(buildPackage)

test('kill -9 at random moments: running it again arrives at the schema of a clean install', async () => {
  const clean = await openTestDatabase()
  await migrate(clean.db, DEFINITION)
  const expected = await schemaSnapshot(clean.db)

  for (let round = 0; round < 10; round++) {
    const { db, url } = await openTestDatabase()
    const moment = Math.random() * 500
    const child = spawnScript(MIGRATOR, [url, JSON.stringify(DEFINITION)])
    await child.waitForLine('started')
    await sleep(moment)
    child.kill('SIGKILL')
    await child.exited

    const again = spawnScript(MIGRATOR, [url, JSON.stringify(DEFINITION)])
    expect(await again.exited, `killed after ${moment} ms:\n${again.lines.join('\n')}`).toMatchObject({ code: 0 })
    expect(await schemaSnapshot(db), `killed after ${moment} ms`).toEqual(expected)
    expect(await schemaStatus(db, DEFINITION)).toMatchObject({ state: 'current' })
  }
})

test('kill -9 in the middle of the real migration, ten times: running it again arrives at the schema of a clean install', async () => {
  const clean = await openTestDatabase()
  await migrate(clean.db)
  const expected = await schemaSnapshot(clean.db)
  const count = (await loadMigrations()).length

  for (let round = 0; round < 10; round++) {
    const { db, url } = await openTestDatabase()
    const child = spawnScript(MIGRATOR, [url, '{}'])
    // After the start, after each migration, and while functions are put in place.
    const after = round === 0 ? 'started' : `applied ${String(Math.min(round, count)).padStart(4, '0')}`
    await child.waitForLine(after)
    const moment = Math.random() * (round < count ? 30 : 200)
    await sleep(moment)
    child.kill('SIGKILL')
    await child.exited

    const again = spawnScript(MIGRATOR, [url, '{}'])
    const killed = `killed ${moment} ms after "${after}"`
    expect(await again.exited, `${killed}:\n${again.lines.join('\n')}`).toMatchObject({ code: 0 })
    expect(await schemaSnapshot(db), killed).toEqual(expected)
    expect(await schemaStatus(db)).toMatchObject({ state: 'current' })
  }
})

test('ten processes migrating at once all succeed', async () => {
  const { db, url } = await openTestDatabase()
  const children = Array.from({ length: 10 }, () => spawnScript(MIGRATOR, [url, JSON.stringify(DEFINITION)]))
  const ends = await Promise.all(children.map(({ exited }) => exited))
  expect(ends.map(({ code }) => code)).toEqual(Array(10).fill(0))
  const applied = children.flatMap(({ lines }) => lines.filter((line) => line.startsWith('applied')))
  expect(applied.sort()).toEqual(MIGRATIONS.map(({ version }) => `applied 000${version}_m${version}`))
  expect(await schemaStatus(db, DEFINITION)).toMatchObject({ state: 'current' })
})
