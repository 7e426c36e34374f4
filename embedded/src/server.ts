/**
 * Finding a server that runs already, and starting one. The states a data folder can be in, and what moves it on:
 *
 *   stopping  a postmaster is on its way out: wait until it is gone, then the server is down
 *   starting  a postmaster replays its log: wait until it is ready
 *   deaf      a postmaster is ready but its socket is gone: stop it, then the server is down
 *   ready     adopt it
 *   down      start one. Two early deaths deserve another try: backends of a killed postmaster have not noticed yet and
 *             hold its memory, or somebody else took the TCP port.
 *
 * All of it happens under the lock.
 */
import { chmod, open, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { EmbeddedError, failure } from './errors.ts'
import type { Folders } from './folders.ts'
import {
  clearStaleFiles,
  eventually,
  findPostmaster,
  isDeaf,
  type Postmaster,
  readPostmaster,
  stopPostmaster,
} from './postmaster.ts'
import { findStrayPostmasters } from './processes.ts'
import { type Programs, spawnProgram } from './programs.ts'
import { type Address, SOCKET_PORT, toArguments, toHba } from './settings.ts'
import { openSocketFolder } from './socket.ts'

export interface Server {
  readonly pid: number
  readonly address: Address
}

/** Recovery after a crash replays at most a few hundred megabytes; this is far more than that takes. */
const START_MS = 120_000

/** Backends look for their postmaster whenever they wait for something; one that computes may take longer. */
const RETRY_MS = 30_000

const KEPT_LOG_BYTES = 10_000_000

/** The ready server of these folders, if one runs. */
export async function findServer(folders: Folders, programs: Programs): Promise<Server | undefined> {
  let found: Postmaster | undefined
  const settled = await eventually(async () => {
    found = await findPostmaster(folders.data, programs.account)
    return found === undefined || found.status === 'ready'
  }, START_MS)
  if (found === undefined) return undefined
  if (!settled) {
    throw new EmbeddedError(
      'START_FAILED',
      `The Postgres server of ${folders.dataDir} (process ${found.pid}) is not getting ready; it says "${found.status}". ` +
        `End that process and try again.\n${await lastLines(folders.log, 0)}`,
    )
  }
  const address = await addressOf(found, folders)
  if (!(await isDeaf(address))) return { pid: found.pid, address }
  await stopPostmaster(found.pid, folders.data, programs)
  return undefined
}

/**
 * Stops servers whose folder was deleted under them. They still write to it by its path and would ruin a new cluster in
 * the same place, so this comes before one is made.
 */
export async function stopStrays(folders: Folders, programs: Programs): Promise<void> {
  for (const pid of findStrayPostmasters(folders.data, programs.account.uid)) {
    await stopPostmaster(pid, folders.data, programs)
  }
}

export interface StartPlan {
  readonly listen: 'socket' | 'tcp'
  readonly settings: Readonly<Record<string, string>>
  /** The port of the last time, tried first so that connection strings stay valid over a restart. */
  readonly lastPort: number | undefined
}

/** Starts a server in a folder whose cluster is there and whose server is down. */
export async function startServer(folders: Folders, programs: Programs, plan: StartPlan): Promise<Server> {
  const deadline = Date.now() + RETRY_MS
  for (let port = plan.lastPort; ; port = undefined) {
    const address = await chooseAddress(folders, programs, plan.listen, port)
    await clearStaleFiles(folders.data, address.listen === 'socket' ? address.host : undefined)
    await writeFile(folders.hba, toHba(plan.listen))
    await chmod(folders.hba, 0o644) // the server's user reads it, whatever the umask
    const outcome = await launch(folders, programs, toArguments(plan.settings, address, folders.hba))
    if ('pid' in outcome) return { pid: outcome.pid, address }
    if (!isWorthRetrying(outcome.log) || Date.now() > deadline) {
      const what = `Starting the Postgres server of ${folders.dataDir} (${outcome.ending})`
      throw failure(what, `(the end of ${folders.log})\n${outcome.log}`, 'START_FAILED')
    }
    await wait(100)
  }
}

export function isWorthRetrying(log: string): boolean {
  return /pre-existing shared memory block|could not bind IPv4 address|Address already in use/i.test(log)
}

type Outcome = { readonly pid: number } | { readonly ending: string; readonly log: string }

/**
 * One try. The server gets its own process group, so that Ctrl-C in the terminal reaches the application and not the
 * server; its output goes to a file, and it is let go of, so that it does not keep this process alive.
 */
async function launch(folders: Folders, programs: Programs, args: readonly string[]): Promise<Outcome> {
  const logStart = await makeRoom(folders.log)
  const log = await open(folders.log, 'a', 0o600)
  let ending: string | undefined
  try {
    const child = await spawnProgram(programs, 'postgres', ['-D', folders.data, ...args], {
      stdio: ['ignore', log.fd, log.fd],
      detached: true,
    })
    child.once('exit', (code, signal) => {
      ending = signal ? `ended by ${signal}` : `exit code ${code}`
    })
    child.unref()
    const pid = child.pid!
    let ready = false
    await eventually(async () => {
      const found = await readPostmaster(folders.data)
      ready = found?.pid === pid && found.status === 'ready'
      return ready || ending !== undefined
    }, START_MS)
    if (ready && ending === undefined) return { pid }
    if (ending === undefined) await stopPostmaster(pid, folders.data, programs)
    return { ending: ending ?? 'not ready in time', log: await lastLines(folders.log, logStart) }
  } finally {
    await log.close()
  }
}

async function chooseAddress(
  folders: Folders,
  programs: Programs,
  listen: 'socket' | 'tcp',
  port: number | undefined,
): Promise<Address> {
  if (listen === 'socket') {
    return { listen, host: await openSocketFolder(folders.home, programs.account), port: SOCKET_PORT }
  }
  return { listen, host: LOOPBACK, port: port ?? (await freePort()), password: await readPassword(folders) }
}

async function addressOf(found: Postmaster, folders: Folders): Promise<Address> {
  if (found.socketFolder !== '') return { listen: 'socket', host: found.socketFolder, port: found.port }
  return { listen: 'tcp', host: LOOPBACK, port: found.port, password: await readPassword(folders) }
}

const LOOPBACK = '127.0.0.1'

async function readPassword(folders: Folders): Promise<string> {
  try {
    return await readFile(folders.password, 'utf8')
  } catch (error) {
    throw failure(`Reading the server's password from ${folders.password}`, String(error), 'START_FAILED', error)
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, LOOPBACK, () => {
      const address = probe.address()
      const port = typeof address === 'object' && address ? address.port : 0
      probe.close(() => resolve(port))
    })
  })
}

/** Sets a long log aside and returns where new lines will begin. */
async function makeRoom(log: string): Promise<number> {
  const size = await stat(log).then(
    ({ size }) => size,
    () => 0,
  )
  if (size < KEPT_LOG_BYTES) return size
  await rename(log, `${log}.old`)
  return 0
}

async function lastLines(log: string, from: number): Promise<string> {
  const content = await readFile(log).catch(() => Buffer.alloc(0))
  return content.subarray(from).toString('utf8').trim().split('\n').slice(-20).join('\n')
}
