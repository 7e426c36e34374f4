/** A migration while the application writes: no append fails, none is lost, and racing migrators agree. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { checksumOf, loadMigrations, loadSqlFiles } from '../../src/postgres/index.ts'
import { follow, instance, SERVERS } from '../log/support/open-log.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

describe.each(SERVERS)('migrating on Postgres $major', ({ major }) => {
  it('that adds to tables and replaces every function fails no append of some 200 a second', async () => {
    const { url } = await testDatabase({ major })
    const ac = instance({ database: url })
    const { version } = await ac.migrate()
    const sql = await connect(url)
    await sql.query(`select aftercommit.declare_stream('lamp')`)
    const load = startLoad(ac, 4)
    await load.more(100)

    const migrators = [instance({ database: url }), instance({ database: url })]
    const next = await nextRelease()
    const results = await Promise.all(migrators.map((migrator) => migrator.migrate(next)))
    await load.more(100)
    const { committed, failed } = await load.stop()

    expect(failed).toEqual([])
    const { rows } = await sql.query('select version::int from aftercommit.migrations order by version')
    const latest = rows.at(-1).version
    expect(latest).toBe(version + 1)
    expect(rows.map(({ version }) => version)).toEqual(Array.from({ length: latest }, (_, n) => n + 1))
    // Together they applied each of them once.
    expect(results.flatMap(({ applied }) => applied)).toEqual([expect.stringMatching(/_more$/)])
    expect(results.flatMap(({ placed }) => placed)).toEqual(next.sql.files.map(({ name }) => name))
    expect(results.map(({ version }) => version)).toEqual([latest, latest])

    const reader = follow(ac.log)
    const last = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await reader.sees(last.id)
    expect(new Set(reader.ids)).toEqual(new Set([...committed, last.id]))
    expect(reader.ids).toHaveLength(committed.length + 1)
    const versions = (await ac.log.stream({ type: 'lamp', id: '1' }, { limit: 10_000 })).map(({ version }) => version)
    expect(versions).toEqual(versions.map((_, n) => n + 1))
  })
})

/** One more migration of the busiest table, and every function, trigger and view with another text. */
async function nextRelease() {
  const migrations = await loadMigrations()
  const sql = await loadSqlFiles()
  const text =
    '-- older: keep\nalter table :schema.events add column more text; alter table :schema.streams add column more text;'
  const more = { version: migrations.length + 1, name: 'more', sql: text, checksum: checksumOf(text) }
  const files = sql.files.map((file) => ({
    ...file,
    sql: `-- again\n${file.sql}`,
    hash: checksumOf(`again ${file.sql}`),
  }))
  return { migrations: [...migrations, more], sql: { version: sql.version + 1, files } }
}

/** Writers that emit all sorts of events, about fifty times a second each. */
function startLoad(ac: Aftercommit, writers: number) {
  const committed: string[] = []
  const failed: unknown[] = []
  let running = true
  const ended = Array.from({ length: writers }, async (_, writer) => {
    for (let n = 0; running; n++) {
      const sorts = [{}, { id: `chosen-${writer}-${n}` }, { aggregate: { type: 'lamp', id: '1' } }]
      try {
        const emitted = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {}, ...sorts[n % sorts.length] }))
        committed.push(emitted.id)
      } catch (error) {
        failed.push(error)
      }
      await pause(15)
    }
  })
  return {
    more(count: number): Promise<boolean> {
      const goal = committed.length + failed.length + count
      return eventually(() => committed.length + failed.length >= goal)
    },
    async stop() {
      running = false
      await Promise.all(ended)
      return { committed, failed }
    },
  }
}
