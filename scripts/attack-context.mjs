/**
 * What an attack gets: a migrated database of its own on a throwaway server, and ways to start the things it attacks.
 * Everything an attack starts ends with it.
 *
 *   url, folder, quick, signal   the database; an empty folder; whether to play the small form; fires at the time limit
 *   ac                           an instance on the database, to emit with; it is never started
 *   sql(text, values)            a statement of the superuser; gives the rows
 *   start(toml, options)         `aftercommit start` with this file, once it is ready
 *   cli(...words)                a command of `aftercommit` on the database; gives `code`, `stdout` and `stderr`
 *   mount(options)               a process that serves `/sse`, `/graphql` (streams and WebSockets) and `/inbound`
 *   redis()                      a real redis-server with a plain client
 *   until(look, what)            waits until `look` gives something; broken when it never does
 *   hold(condition, what)        broken with these words when the condition is false
 */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAftercommit } from 'aftercommit'
import { startEmbedded } from 'aftercommit-embedded'
import pg from 'pg'
import { root } from './steps.mjs'

class Broken extends Error {
  name = 'Broken'
}

class NotPlayed extends Error {
  name = 'NotPlayed'
}

const waitMs = 30_000
const template = 'attack_template'

export async function openArena() {
  const home = mkdtempSync(join(tmpdir(), 'aftercommit-attack-'))
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '100' }
  const server = await startEmbedded({ dataDir: join(home, 'postgres'), settings })
  await onDatabase(server.url, (client) => client.query(`create database ${template}`))
  const first = createAftercommit({ database: withDatabase(server.url, template) })
  await first.migrate()
  await first.stop()
  return {
    open: (options) => openContext(server.url, home, options),
    async close() {
      await server.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

async function openContext(serverUrl, home, { quick, limitMs }) {
  const name = `attack_${randomBytes(6).toString('hex')}`
  await onDatabase(serverUrl, (client) => client.query(`create database ${name} template ${template}`))
  const url = withDatabase(serverUrl, name)
  const folder = join(home, name)
  mkdirSync(folder)
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), limitMs)
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  const ac = createAftercommit({ database: url })
  const closings = [
    () => onDatabase(serverUrl, (admin) => admin.query(`drop database ${name} with (force)`)),
    () => client.end(),
    () => ac.stop(),
  ]

  const context = {
    ...{ url, folder, quick, ac, signal: over.signal, until, hold },
    sql: async (text, values) => (await client.query(text, values)).rows,
    async start(toml, { args = [], env = {}, isReady = true } = {}) {
      writeFileSync(join(folder, 'aftercommit.toml'), toml)
      const child = spawn(process.execPath, [join(root, 'lib/cli/main.js'), 'start', ...args], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, DATABASE_URL: url, ...env },
      })
      const process_ = watch(child, closings)
      if (isReady) await process_.line('Ready:')
      return process_
    },
    cli: (...words) =>
      new Promise((resolve) => {
        const args = [join(root, 'lib/cli/main.js'), ...words]
        const env = { PATH: process.env.PATH, HOME: folder, DATABASE_URL: url }
        execFile(process.execPath, args, { cwd: folder, env, timeout: waitMs }, (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr }),
        )
      }),
    async mount({ heapMb = 512, ...options } = {}) {
      const file = join(root, 'scripts/attack-server.mjs')
      const child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, file, url, JSON.stringify(options)], {
        cwd: folder,
      })
      const served = watch(child, closings)
      const port = /listening on (\d+)/.exec(await served.line('listening on'))[1]
      return { ...served, address: `http://127.0.0.1:${port}` }
    },
    async redis() {
      const binary = ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']
        .map((path) => join(path, 'redis-server'))
        .find((path) => existsSync(path))
      if (binary === undefined) throw new NotPlayed('redis-server is not installed')
      const port = await freePort()
      const address = `redis://127.0.0.1:${port}`
      const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
      await watch(spawn(binary, args), closings).line('Ready to accept connections')
      const { createClient } = await import('@redis/client')
      const plain = createClient({ url: address, RESP: 2, socket: { reconnectStrategy: false } })
      plain.on('error', () => {})
      await plain.connect()
      closings.push(() => plain.isOpen && plain.destroy())
      return { url: address, client: plain }
    },
  }
  return {
    context,
    async close() {
      clearTimeout(timer)
      for (const closing of closings.reverse()) await closing()
    },
  }
}

/** A process of the attack: its lines, its end, and the peak of its memory where the system tells. */
function watch(child, closings) {
  const lines = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => lines.push(line))
  }
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  closings.push(async () => {
    if (isRunning()) child.kill('SIGKILL')
    await exited
  })
  return {
    pid: child.pid,
    lines,
    exited,
    isRunning,
    kill: (signal = 'SIGTERM') => child.kill(signal),
    line: (text) =>
      until(() => {
        const found = lines.find((line) => line.includes(text))
        if (found === undefined && !isRunning())
          throw new Error(`ended without printing "${text}": ${lines.join('\n')}`)
        return found
      }, `the process never printed "${text}"`),
  }
}

async function until(look, what, { withinMs = waitMs, everyMs = 20 } = {}) {
  for (const end = Date.now() + withinMs; Date.now() < end; await sleep(everyMs)) {
    const found = await look()
    if (found) return found
  }
  throw new Broken(what)
}

function hold(condition, what) {
  if (!condition) throw new Broken(what)
}

async function onDatabase(url, use) {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

function withDatabase(url, database) {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/]*)\/[^?]*/, (_, base) => `${base}/${database}`)
}

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address()
  listener.close()
  await once(listener, 'close')
  return port
}
