/**
 * Telling processes apart. A number alone is not an identity: the system hands it out again. A process is therefore
 * known by its number together with the moment it started (and, on Linux, the boot that moment belongs to).
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'

export interface ProcessIdentity {
  readonly pid: number
  readonly started: string
}

export function ownIdentity(): ProcessIdentity {
  own ??= { pid: process.pid, started: startOf(process.pid) ?? '' }
  return own
}

export function isAlive(identity: ProcessIdentity): boolean {
  return startOf(identity.pid) === identity.started
}

/** The identity written in a file; undefined when the file is gone, says something else, or was cut short by a crash. */
export async function readIdentity(file: string): Promise<ProcessIdentity | undefined> {
  try {
    const { pid, started } = JSON.parse(await readFile(file, 'utf8')) as Partial<ProcessIdentity>
    return typeof pid === 'number' && typeof started === 'string' ? { pid, started } : undefined
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** When a process started, as an opaque word; undefined when there is no such process or it is only waiting to be reaped. */
export function startOf(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
  if (process.platform === 'linux') return linuxStart(pid)
  if (process.platform === 'win32') return exists(pid) ? 'running' : undefined
  const [state, ...started] = ps(['-o', 'state=,lstart=', '-p', String(pid)])
    .trim()
    .split(/\s+/)
  return started.length === 0 || state?.startsWith('Z') ? undefined : started.join(' ')
}

/** Whether `pid` is a postmaster of the data folder, run by this user. A process that merely got its old number is not. */
export function isPostmasterOf(pid: number, data: string, uid: number): boolean {
  if (startOf(pid) === undefined) return false
  // Windows shows other processes' command lines only through slow tools; there the number has to do.
  if (process.platform === 'win32') return true
  try {
    if (process.platform === 'linux') {
      return (
        statSync(`/proc/${pid}`).uid === uid && isPostmasterCommand(readFileSync(`/proc/${pid}/cmdline`, 'utf8'), data)
      )
    }
  } catch {
    return false // it ended while we looked
  }
  return psRows(['-p', String(pid)]).some((row) => isPostmasterRow(row, data, uid))
}

/** Postmasters of a data folder that are running although its pid file no longer says so: the folder was deleted under them. */
export function findStrayPostmasters(data: string, uid: number): number[] {
  if (process.platform === 'win32') return []
  if (process.platform !== 'linux') {
    return psRows(['-ax'])
      .filter((row) => isPostmasterRow(row, data, uid))
      .map((row) => row.pid)
  }
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => isPostmasterOf(pid, data, uid))
}

/** Whether a NUL-separated command line is the one server.ts starts a postmaster with. */
export function isPostmasterCommand(commandLine: string, data: string): boolean {
  const [program = '', flag, folder] = commandLine.split('\0')
  return basename(program) === 'postgres' && flag === '-D' && folder === data
}

let own: ProcessIdentity | undefined
let boot: string | undefined

// Field 22 of stat is the start in clock ticks since boot; the name in field 2 may itself contain spaces and brackets.
function linuxStart(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${fields[19]}`
  } catch {
    return undefined
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

interface PsRow {
  readonly pid: number
  readonly uid: number
  readonly command: string
}

function psRows(which: string[]): PsRow[] {
  const lines = ps([...which, '-ww', '-o', 'pid=,uid=,command=']).split('\n')
  return lines.flatMap((line) => {
    const [, pid, uid, command] = /^\s*(\d+)\s+(-?\d+)\s+(.*)$/.exec(line) ?? []
    return command === undefined ? [] : [{ pid: Number(pid), uid: Number(uid) >>> 0, command }]
  })
}

function isPostmasterRow(row: PsRow, data: string, uid: number): boolean {
  return row.uid === uid && row.command.includes(`/postgres -D ${data} `)
}

function ps(args: string[]): string {
  try {
    return execFileSync('ps', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return '' // ps exits with 1 when there is no such process
  }
}
