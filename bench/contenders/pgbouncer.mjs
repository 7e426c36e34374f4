/** A PgBouncer in transaction mode in front of all databases of a server, in a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { eventually } from './eventually.mjs'

const BINARIES = [
  '/usr/sbin/pgbouncer',
  '/usr/bin/pgbouncer',
  '/usr/local/bin/pgbouncer',
  '/opt/homebrew/bin/pgbouncer',
]
const NOBODY = 65_534
const POOL_SIZE = 20

export async function openPgbouncer(serverUrl) {
  const binary = BINARIES.find((path) => existsSync(path))
  if (binary === undefined) throw new Error('pgbouncer is not installed. On Debian: apt-get install pgbouncer')
  const { host, port, user, password } = new pg.Client(serverUrl)
  const folder = mkdtempSync(join(tmpdir(), 'aftercommit-bench-bouncer-'))
  const config = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'users.txt')
  const ownPort = await freePort()
  writeFileSync(users, `"${user}" "${password ?? ''}"\n`)
  writeFileSync(
    config,
    `[databases]
* = host=${host} port=${port} user=${user}${password ? ` password=${password}` : ''}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${POOL_SIZE}
`,
  )
  // It refuses to run as root, and another user must be able to read its files.
  const asRoot = process.getuid?.() === 0
  chmodSync(folder, 0o755)
  if (asRoot) for (const file of [config, users]) chownSync(file, NOBODY, NOBODY)
  const child = spawn(binary, ['-q', config], { stdio: 'ignore', ...(asRoot && { uid: NOBODY, gid: NOBODY }) })
  const exited = once(child, 'exit')
  const through = (url) => `postgres://${user}@127.0.0.1:${ownPort}/${new pg.Client(url).database}`
  await eventually(() => canConnect(through(serverUrl)), 'PgBouncer', 10_000)
  return {
    /** The address of a database of this server, through the pooler. */
    through,
    async close() {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function canConnect(url) {
  const client = new pg.Client(url)
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
