/**
 * A real PgBouncer on loopback with a configuration of its own. `findPgbouncer` tells whether there is one: on CI its
 * absence is a failure, elsewhere the tests are skipped aloud.
 */
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { findProgram } from '../../scripts/programs.mjs'
import { eventually } from './eventually.ts'
import { watch } from './processes.ts'
import { hasProgram } from './programs.ts'
import { addressOf } from './proxy.ts'

/** True when tests of it should run. */
export function hasPgbouncer(): boolean {
  return hasProgram('pgbouncer', 'behaviour behind a pooler')
}

const NOBODY = 65_534

/** A URL of the same database that goes through the pooler. */
export async function startPgbouncer(url: string, mode: 'transaction' | 'session', poolSize = 4): Promise<string> {
  const { host, port, user, password, database } = addressOf(url)
  const folder = mkdtempSync(join(tmpdir(), 'ac-bouncer-'))
  const ownPort = await freePort()
  const config = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${user}" "${password ?? ''}"\n`)
  writeFileSync(
    config,
    `[databases]
${database} = host=${host} port=${port} dbname=${database} user=${user}${password ? ` password=${password}` : ''}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = ${poolSize}
`,
  )
  // It refuses to run as root, and nobody must be able to read what root has written.
  const asRoot = process.getuid?.() === 0
  chmodSync(folder, 0o755)
  if (asRoot) for (const file of [config, users]) chownSync(file, NOBODY, NOBODY)
  const child = watch(spawn(findProgram('pgbouncer')!, [config], { ...(asRoot && { uid: NOBODY, gid: NOBODY }) }))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const pooled = `postgres://${user}@127.0.0.1:${ownPort}/${database}`
  await eventually(() => canConnect(pooled)).catch((cause: unknown) => {
    throw new Error(`pgbouncer did not start:\n${child.lines.join('\n')}`, { cause })
  })
  return pooled
}

async function canConnect(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  await client.end()
  return true
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
