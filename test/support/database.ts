/**
 * A database per test, dropped when the test passes and left behind when it fails, so that there is something to look
 * at. `migrated: true` copies a template that has all migrations, which takes a tenth of the time.
 */
import { hash, randomBytes } from 'node:crypto'
import pg from 'pg'
import { expect, inject, onTestFinished } from 'vitest'
import { howToGet } from '../../scripts/programs.mjs'
import {
  createDatabase,
  type Database,
  type DatabaseOptions,
  loadMigrations,
  loadSqlFiles,
  migrate,
} from '../../src/postgres/index.ts'
import { withoutPostgres } from './older-postgres.ts'
import { hasProgram } from './programs.ts'

export interface TestDatabase {
  url: string
  name: string
  schema: string
  drop(): Promise<void>
}

/** Which of the servers that the suite runs on: the embedded ones by major, or a distribution's own with JIT. */
export type ServerKind = 18 | 14 | 'system'

export interface TestDatabaseOptions {
  major?: ServerKind
  migrated?: boolean
}

export async function testDatabase(options: TestDatabaseOptions | ServerKind = {}): Promise<TestDatabase> {
  const { major = usualServer(), migrated = false } = typeof options !== 'object' ? { major: options } : options
  const server = serverUrl(major)
  const name = `ac_test_${randomBytes(6).toString('hex')}`
  const template = migrated ? await migratedTemplate(server) : 'template0'
  const client = await administrator(server)
  await client.query(`create database ${name} template ${template} ${client.strategy}`)
  const drop = async () => (await administrator(server)).query(`drop database if exists ${name} with (force)`)
  dropWhenPassed(drop)
  return { url: withDatabase(server, name), name, schema: 'aftercommit', drop: async () => void (await drop()) }
}

/** A `Database` on a database of its own; closed at the end of the test. */
export async function openTestDatabase(
  options: TestDatabaseOptions & Partial<DatabaseOptions> = {},
): Promise<{ db: Database; url: string; name: string }> {
  const { major, migrated, ...rest } = options
  const { url, name } = await testDatabase({ ...(major && { major }), ...(migrated && { migrated }) })
  return { db: openDatabase({ database: url, ...rest }), url, name }
}

export function openDatabase(options: DatabaseOptions): Database {
  const db = createDatabase({ connectTimeoutMs: 5_000, ...options })
  onTestFinished(() => db.close(1_000))
  return db
}

/**
 * The server of a test that names none. Deliveries, workflows and guarantees depend on plans, so their tests run on a
 * distribution's server, as most users have it; all others run on the embedded one. `npm run matrix` plays every test on
 * each major.
 */
export function usualServer(): ServerKind {
  const isStock = /[\\/]test[\\/](delivery|workflows|guarantees)[\\/]/.test(expect.getState().testPath ?? '')
  return isStock && inject('systemUrl') !== '' ? 'system' : 18
}

export function serverUrl(major: ServerKind = usualServer()): string {
  const url = inject(({ 18: 'pg18Url', 14: 'pg14Url', system: 'systemUrl' } as const)[major])
  if (url !== '') return url
  if (major === 'system') throw new Error(`no system's postgres is installed (${howToGet("a system's postgres")})`)
  return withoutPostgres(major)
}

/** True when tests of a distribution's PostgreSQL should run. */
export function hasSystemPostgres(): boolean {
  if (inject('isServerGiven')) {
    console.warn('AFTERCOMMIT_TEST_DATABASE_URL chose the server: a server with JIT is NOT tested in this run')
    return false
  }
  return inject('systemUrl') !== '' || hasProgram("a system's postgres", 'a server with JIT')
}

/** A plain client, for what a test does behind the library's back; ended with the test. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  return client
}

export function withDatabase(url: string, database: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/]*)\/[^?]*/, (_, base: string) => `${base}/${database}`)
}

interface Administrator extends pg.Client {
  /** Copying files takes half the time of writing every page to the log, which is what servers from 15 on do by default. */
  strategy: '' | 'strategy file_copy'
}

/** One connection per server for all tests of a file: a new one takes as long as a new database. */
function administrator(server: string): Promise<Administrator> {
  const known = administrators.get(server) ?? openAdministrator(server)
  administrators.set(server, known)
  return known
}

const administrators = new Map<string, Promise<Administrator>>()

async function openAdministrator(server: string): Promise<Administrator> {
  const client = new pg.Client(server)
  const forget = () => administrators.delete(server)
  client.on('error', forget).on('end', forget)
  await client.connect().catch((error: unknown) => {
    forget()
    throw error
  })
  // The worker of vitest ends although this connection is open.
  ;(client as unknown as { unref(): void }).unref()
  const { rows } = await client.query<{ major: number }>(
    `select current_setting('server_version_num')::int / 10000 as major`,
  )
  return Object.assign(client, { strategy: rows[0]!.major >= 15 ? ('strategy file_copy' as const) : ('' as const) })
}

async function admin<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Outside a test, in a hook, the caller drops it. */
function dropWhenPassed(drop: () => Promise<unknown>): void {
  try {
    onTestFinished(async ({ task }) => {
      if (task.result?.state !== 'fail') await drop()
    })
  } catch {
    // There is no test to be finished with.
  }
}

/** Asked for once by every test file. */
function migratedTemplate(server: string): Promise<string> {
  const known = templates.get(server) ?? makeTemplate(server)
  templates.set(server, known)
  return known
}

const templates = new Map<string, Promise<string>>()

/** Made once per content of the migrations; several workers may ask at once, so under a lock. */
function makeTemplate(server: string): Promise<string> {
  return admin(server, async (client) => {
    const migrations = await loadMigrations()
    const sql = await loadSqlFiles()
    const hashes = [...migrations.map(({ checksum }) => checksum), ...sql.files.map((file) => file.hash)]
    const content = hash('sha256', hashes.join(), 'hex')
    const name = `ac_template_${content.slice(0, 32)}`
    await client.query(`select pg_advisory_lock(hashtextextended('ac_template', 0))`)
    const { rowCount } = await client.query(`select from pg_database where datname = $1`, [name])
    if (rowCount) return name
    const building = `${name}_b`
    await client.query(`drop database if exists ${building} with (force)`)
    await client.query(`create database ${building}`)
    const db = createDatabase({ database: withDatabase(server, building) })
    await migrate(db, { migrations, sql })
    await db.close()
    await client.query(`alter database ${building} rename to ${name}`)
    return name
  })
}
