/** What the tests of the embedded Postgres share: a temporary folder, a built package, child processes, SQL. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startEmbedded } from 'aftercommit-embedded'
import pg from 'pg'
import { currentPlatform, platformPackage } from '../../embedded/src/platform.ts'
import { startOf } from '../../embedded/src/processes.ts'

export const isRoot = process.getuid?.() === 0
export const isLinux = process.platform === 'linux'
const root = fileURLToPath(new URL('../../', import.meta.url))

/** The package with the binaries of this platform. */
function installedBinaries(): string {
  const name = platformPackage(currentPlatform())
  return dirname(dirname(createRequire(import.meta.url).resolve(name)))
}

/** A folder for one test file that every user of the machine may enter, gone at the end together with its servers. */
export function makePlayground() {
  const folder = mkdtempSync(join(tmpdir(), 'ac-'))
  chmodSync(folder, 0o755)
  const children: Child[] = []
  const dataDirs = new Map<string, string | undefined>()
  let built: string | undefined

  return {
    folder,
    /** A data folder that does not exist yet. Name its binaries when they are not the usual ones. */
    dataDir(name: string, binaries?: string): string {
      const path = join(folder, name)
      dataDirs.set(path, binaries)
      return path
    },
    /** Starts a process that uses a server; see child.mjs. */
    child(options: Record<string, unknown>, as?: { uid: number; gid: number }): Child {
      built ??= build(folder)
      const child = new Child(join(folder, 'child.mjs'), built, { binaries: installedBinaries(), ...options }, as)
      children.push(child)
      return child
    },
    /** Joining a server and stopping it is the simplest way to end whatever a test left running. */
    async clear(): Promise<void> {
      for (const child of children) await child.kill()
      for (const [dataDir, binaries] of dataDirs) {
        if (!existsSync(dataDir)) continue
        const server = await startEmbedded({ dataDir, binaries }).catch(() => undefined)
        await server?.stop()
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export class Child {
  readonly process: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(
    program: string,
    built: string,
    options: Record<string, unknown>,
    as: { uid: number; gid: number } | undefined,
  ) {
    this.process = spawn(process.execPath, [program, built, JSON.stringify(options)], {
      ...as,
      cwd: '/',
      stdio: [options.leave ? 'ignore' : 'pipe', 'pipe', 'inherit'],
    })
    this.#lines = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]()
  }

  /** Reads on until the process reports one of these events; fails when it ends first. */
  async until(...events: string[]): Promise<Report> {
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done) throw new Error(`the process ended before it reported ${events.join(' or ')}`)
      const report = JSON.parse(value) as Report
      if (events.includes(report.event)) return report
      if (report.event === 'failed') throw new Error(`the process failed: ${report.code} ${report.message}`)
    }
  }

  async stop(): Promise<void> {
    this.process.stdin?.write('stop\n')
    await this.until('stopped')
    await this.ended()
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await this.ended()
  }

  async ended(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, 'exit')
  }
}

export interface Report {
  event: string
  url: string
  host: string
  port: number
  version: string
  dataDir: string
  adopted: boolean
  pid: number
  code: string
  message: string
  detail: string
}

/** Runs one statement over node-postgres and returns its rows. */
export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/** A process that has ended counts as ended, also while nobody has collected it yet. */
export function isRunning(pid: number): boolean {
  return startOf(pid) !== undefined
}

export async function poll(
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs = 60_000,
): Promise<void> {
  const deadline = Date.now() + deadlineMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`)
    await wait(10)
  }
}

/** A copy of the binaries as npm unpacks them when install scripts are blocked: without a single link. */
export async function copyBare(to: string): Promise<string> {
  await cp(installedBinaries(), to, { recursive: true, filter: (source) => !lstatSync(source).isSymbolicLink() })
  return to
}

/** The package as it is published, where a child of any user can load it. */
function build(folder: string): string {
  const out = join(folder, 'built')
  mkdirSync(out)
  const tsc = join(root, 'node_modules/.bin/tsc')
  execFileSync(tsc, ['-p', join(root, 'embedded/tsconfig.json'), '--outDir', out], { stdio: 'inherit' })
  writeFileSync(join(out, 'package.json'), '{"type":"module"}')
  copyFileSync(join(root, 'test/embedded/child.mjs'), join(folder, 'child.mjs'))
  return join(out, 'index.js')
}
