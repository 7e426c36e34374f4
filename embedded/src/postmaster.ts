/** The running server as its own pid file describes it. The file is trusted only as far as the process list agrees. */
import { execFileSync } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Account } from './account.ts'
import { EmbeddedError } from './errors.ts'
import { isPostmasterOf, startOf } from './processes.ts'
import type { Programs } from './programs.ts'

export interface Postmaster {
  readonly pid: number
  readonly port: number
  /** Empty when the server listens on TCP only. */
  readonly socketFolder: string
  /** "starting", "ready" or "stopping"; empty in the moment before the first of them is written. */
  readonly status: string
}

/** Reads postmaster.pid: process, data folder, start time, port, socket folder, address, shared memory, status. */
export function parsePostmasterFile(text: string): Postmaster | undefined {
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
  return { pid, port: Number(lines[3] ?? 0), socketFolder: lines[4] ?? '', status: (lines[7] ?? '').trim() }
}

/** The living postmaster of a data folder, if it has one. */
export async function findPostmaster(data: string, account: Account): Promise<Postmaster | undefined> {
  const found = await readPostmaster(data)
  return found && isPostmasterOf(found.pid, data, account.uid) ? found : undefined
}

export async function readPostmaster(data: string): Promise<Postmaster | undefined> {
  return parsePostmasterFile(await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => ''))
}

/**
 * Postgres clears the files of a dead postmaster itself, but gives up when the number in them is alive again as some
 * other process. Call this only when findPostmaster has found none.
 */
export async function clearStaleFiles(data: string, socketFolder: string | undefined): Promise<void> {
  const files = [join(data, 'postmaster.pid')]
  if (socketFolder !== undefined) files.push(join(socketFolder, '.s.PGSQL.5432.lock'))
  for (const file of files) {
    const stale = parsePostmasterFile(await readFile(file, 'utf8').catch(() => ''))
    if (stale && startOf(stale.pid) !== undefined) await rm(file, { force: true })
  }
}

/** Whether nothing listens at the address any more. A socket file can vanish under a living server: cleaners sweep /tmp. */
export function isDeaf(address: {
  readonly listen: string
  readonly host: string
  readonly port: number
}): Promise<boolean> {
  const { host, port } = address
  const socket = address.listen === 'socket' ? connect(join(host, `.s.PGSQL.${port}`)) : connect({ host, port })
  return new Promise((resolve) => {
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    // Any other failure means a busy server, not a missing one.
    socket.once('error', (error: NodeJS.ErrnoException) =>
      resolve(['ENOENT', 'ECONNREFUSED'].includes(error.code ?? '')),
    )
  })
}

/** Waits for a condition, looking often at first and then less. False when the time is over. */
export async function eventually(condition: () => boolean | Promise<boolean>, patienceMs: number): Promise<boolean> {
  const deadline = Date.now() + patienceMs
  for (let pauseMs = 5; !(await condition()); pauseMs = Math.min(pauseMs * 1.5, 100)) {
    if (Date.now() > deadline) return false
    await wait(pauseMs)
  }
  return true
}

/** A fast shutdown ends transactions and writes a checkpoint, which takes as long as the disk needs. */
const FAST_MS = 60_000
const IMMEDIATE_MS = 20_000

/** Stops a postmaster and waits until it is gone: fast first, then at once (the next start replays what is missing). */
export async function stopPostmaster(pid: number, data: string, programs: Programs): Promise<void> {
  // A process on its way out loses its command line before it is gone, so after the first look its start tells.
  const started = startOf(pid)
  if (!isPostmasterOf(pid, data, programs.account.uid)) return
  const isGone = () => startOf(pid) !== started
  for (const [signal, patienceMs] of [
    ['INT', FAST_MS],
    ['QUIT', IMMEDIATE_MS],
  ] as const) {
    if (isGone()) return
    send(pid, signal, programs)
    if (await eventually(isGone, patienceMs)) return
  }
  throw new EmbeddedError(
    'STOP_FAILED',
    `The Postgres server of ${data} (process ${pid}) did not stop when asked, so it is still running. ` +
      'End that process yourself; the next start recovers its data.',
  )
}

function send(pid: number, signal: 'INT' | 'QUIT', programs: Programs): void {
  try {
    // Windows has no signals; Postgres brings its own, and a program to send them.
    if (process.platform === 'win32') {
      execFileSync(join(programs.native, 'bin', 'pg_ctl.exe'), ['kill', signal, String(pid)], { windowsHide: true })
    } else {
      process.kill(pid, `SIG${signal}`)
    }
  } catch (error) {
    if (startOf(pid) !== undefined) throw error
  }
}
