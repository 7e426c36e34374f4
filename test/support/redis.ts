/**
 * A real Redis on loopback, with a folder of its own. `hasRedis` tells whether there is one: on CI its absence is a
 * failure, elsewhere the tests are skipped aloud.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { onTestFinished } from 'vitest'
import { findProgram } from '../../scripts/programs.mjs'
import { eventually } from './eventually.ts'
import { type TestProcess, watch } from './processes.ts'
import { hasProgram } from './programs.ts'

/** True when tests of it should run. */
export function hasRedis(): boolean {
  return hasProgram('redis-server', 'Redis between instances')
}

export interface RedisServer {
  readonly url: string
  /** Ends it at once, and with it what it held. */
  kill(): Promise<void>
  /** On the same port, empty. */
  start(): Promise<void>
  /** It keeps its connections and answers nobody. */
  pause(): void
  resume(): void
  /** A plain client, ended with the test. */
  client(): Promise<PlainClient>
}

export type PlainClient = Awaited<ReturnType<typeof connectPlainly>>

export async function startRedis({ password }: { password?: string } = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'ac-redis-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const port = await freePort()
  const url = `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`
  let server: TestProcess | undefined

  async function start(): Promise<void> {
    const rights = password === undefined ? [] : ['--requirepass', password]
    const child = watch(
      spawn(findProgram('redis-server')!, [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--dir',
        folder,
        ...rights,
      ]),
    )
    server = child
    // A paused process does not hear anything but SIGKILL and SIGCONT.
    onTestFinished(() => child.kill('SIGCONT'))
    await child.waitForLine('Ready to accept connections')
  }

  await start()
  return {
    url,
    start,
    async kill() {
      server?.kill('SIGKILL')
      await server?.exited
    },
    pause: () => server?.kill('SIGSTOP'),
    resume: () => server?.kill('SIGCONT'),
    client: () => eventually(() => connectPlainly(url)),
  }
}

async function connectPlainly(url: string) {
  const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => {
    if (client.isOpen) client.destroy()
  })
  return client
}

/** A server that is not there: a port on which nothing listens. */
export async function noRedis(): Promise<string> {
  return `redis://127.0.0.1:${await freePort()}`
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const listener = createServer().listen(0, '127.0.0.1', () => {
      const { port } = listener.address() as { port: number }
      listener.close(() => resolve(port))
    })
  })
}
