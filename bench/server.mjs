/**
 * The Postgres of one run, in a temporary folder and gone afterwards, or the one of a given address.
 *
 * embedded  the package's own build: no JIT, and room for what the cases open
 * system    a distribution's own with its default configuration, JIT and fsync included: most users have such a server
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import pg from 'pg'
import { findSystemPostgres, STOCK } from '../scripts/system-postgres.mjs'
import { UsageError } from './arguments.mjs'

const ROOMY = { max_connections: '200', shared_buffers: '256MB', max_wal_size: '4GB' }

export async function startBenchServer({ kind, url }) {
  if (kind === 'given') return { url, ...(await describe(url, kind)), async stop() {} }
  const how = kind === 'embedded' ? { settings: ROOMY } : { settings: STOCK, binaries: systemBinaries() }
  const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-bench-'))
  // Under root the server runs as another user, who has to get in.
  chmodSync(dataDir, 0o755)
  const server = await startEmbedded({ dataDir, ...how })
  return {
    url: server.url,
    ...(await describe(server.url, kind)),
    async stop() {
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

function systemBinaries() {
  const folder = findSystemPostgres()
  if (folder !== undefined) return folder
  throw new UsageError(
    '--server system: no PostgreSQL of this system was found. On Debian or Ubuntu: apt-get install postgresql',
  )
}

/** The facts that decide what a figure means. `jit` is what a session gets: "on" without the library changes nothing. */
async function describe(url, kind) {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`select current_setting('server_version') as version,
    case when pg_jit_available() then 'on' when current_setting('jit')::boolean then 'not available' else 'off' end as jit,
    current_setting('fsync') as fsync`)
  await client.end()
  return { about: { kind, ...rows[0] } }
}
