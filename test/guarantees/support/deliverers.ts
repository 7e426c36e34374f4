/** Processes that work on deliveries, the file they write their calls into, and a database for both. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { mails, openDelivering } from '../../delivery/support/open-delivering.ts'
import { eventually } from '../../support/eventually.ts'
import { spawnScript, type TestProcess } from '../../support/processes.ts'

const DELIVER = fileURLToPath(new URL('deliver.mjs', import.meta.url))

export interface Behaviour {
  readonly workMs?: number
  /** These wait until the file is there. */
  readonly holds?: readonly number[]
  readonly holdsUntil?: string
  /** Fails, as a destination that cannot now, while the file is there. */
  readonly downWhile?: string
  readonly dies?: { on: number; when: 'begin' | 'end'; how: 'exit' | 'kill'; times?: number }
}

export interface DelivererOptions {
  readonly works?: readonly { name: string; retry?: object; behaviour?: Behaviour }[]
  readonly behaviour?: Behaviour
  readonly concurrency?: number
  readonly drainMs?: number
  /** What it says of itself. */
  readonly words?: { host: string; pid: number }
  readonly url?: string
  readonly env?: Record<string, string>
}

export interface Call {
  readonly what: 'begin' | 'end' | 'refused'
  readonly name: string
  readonly id: string
  readonly n: number
  readonly payload: unknown
  readonly attempt: number
  readonly pid: number
  readonly at: number
}

export interface Deliverer extends TestProcess {
  readonly process: string
}

export interface Game {
  readonly url: string
  readonly sql: pg.Client
  /** A file that behaviours wait for, there once it is made. */
  flag(name: string): { readonly path: string; raise(): void; lower(): void }
  start(options?: DelivererOptions): Promise<Deliverer>
  /** `n` deliveries for the work named `mail`, numbered from 1. */
  add(n: number, words?: object): Promise<void>
  calls(what?: Call['what']): Call[]
  /** Resolves when these many numbers have come to their end. */
  ends(numbers: number): Promise<void>
  rows(where?: string): Promise<number>
}

export async function openGame(): Promise<Game> {
  const { url, sql, worker } = await openDelivering()
  const adder = await worker()
  return createGame({ url, sql, add: (n, words) => adder.add(adder.database, mails(n, words)) })
}

/** A game on a database that is there already. */
export function createGame({
  url,
  sql,
  add,
}: Pick<Game, 'url' | 'sql'> & { add: (n: number, words: object) => Promise<unknown> }): Game {
  const folder = mkdtempSync(join(tmpdir(), 'ac-ledger-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const ledger = join(folder, 'ledger')
  writeFileSync(ledger, '')
  const calls = (what?: Call['what']): Call[] =>
    readFileSync(ledger, 'utf8')
      .split('\n')
      // What follows the last end of a line is nothing, or the beginning of one that is being written.
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Call)
      .filter((call) => what === undefined || call.what === what)
  return {
    url,
    sql,
    calls,
    flag(name) {
      const path = join(folder, name)
      return { path, raise: () => writeFileSync(path, ''), lower: () => rmSync(path, { force: true }) }
    },
    async start({ behaviour = {}, works = [{ name: 'mail', behaviour }], env = {}, ...rest } = {}) {
      const started = spawnScript(DELIVER, [JSON.stringify({ url, ledger, works, ...rest })], env)
      const line = await started.waitForLine('started ')
      return Object.assign(started, { process: line.slice('started '.length) })
    },
    add: async (n, words = {}) => void (await add(n, words)),
    ends: async (numbers) =>
      void (await eventually(() => new Set(calls('end').map(({ n }) => n)).size >= numbers, { deadline: 60_000 })),
    rows: async (where = 'true') =>
      (await sql.query(`select from aftercommit.deliveries where ${where}`)).rowCount ?? 0,
  }
}

/** How often each number was begun. */
export function timesBegun(calls: readonly Call[]): Map<number, number> {
  const times = new Map<number, number>()
  for (const { what, n } of calls) if (what === 'begin') times.set(n, (times.get(n) ?? 0) + 1)
  return times
}

/** The most calls that were under way at the same moment, whoever made them, by the order in which they wrote. */
export function mostAtOnce(calls: readonly Call[]): number {
  let running = 0
  let most = 0
  for (const { what } of calls) {
    running += what === 'begin' ? 1 : -1
    most = Math.max(most, running)
  }
  return most
}
