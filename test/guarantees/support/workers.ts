/** Processes that run subscriptions, the file they write their calls into, and what must hold of it. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import type { AftercommitOptions } from '../../../src/options.ts'
import type { SubscriptionOptions } from '../../../src/subscriptions/index.ts'
import { eventually } from '../../support/eventually.ts'
import { spawnScript, type TestProcess } from '../../support/processes.ts'

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))

export interface Behaviour {
  /** At most; each call waits a random part of it. */
  readonly workMs?: number
  /** Without letting anything else run. */
  readonly cpuMs?: number
  /** This one waits until the file is there: whatever is to happen in the middle finds the worker there, however late. */
  readonly holds?: { on: string; until: string }
  readonly dies?: { on: string; how: 'exit' | 'kill' | 'heap'; when: 'begin' | 'end'; times?: number }
  readonly fails?: 'all' | readonly string[]
  /** The share of events whose first try fails. */
  readonly failFirst?: number
  /** A table that gets the id of each event, through the transaction of the handler. */
  readonly effects?: string
}

export type WorkerSubscription = Omit<SubscriptionOptions, 'handle' | 'handleBatch'> & {
  readonly behaviour?: Behaviour
  readonly batch?: boolean
}

export interface WorkerOptions {
  readonly subscriptions: readonly WorkerSubscription[]
  readonly instance: AftercommitOptions
  /** Without log lines: a test that counts memory or tens of thousands of events does not want them. */
  readonly quiet?: boolean
  readonly env?: Record<string, string>
}

/** Resolves when the process has started, or has ended trying. */
export async function startWorker(ledger: FileLedger, options: WorkerOptions): Promise<TestProcess> {
  const { env = {}, ...rest } = options
  const worker = spawnScript(WORKER, [JSON.stringify({ ...rest, ledger: ledger.path })], env)
  // The whole line: parts of the library log that they started as well.
  await Promise.race([worker.waitForLine(/^started$/).catch(() => {}), worker.exited])
  return worker
}

/**
 * Resolves when the server has noticed the end of a process: what that one had sent last is done or never will be.
 */
export async function isBuried(sql: pg.Client, { pid }: TestProcess): Promise<void> {
  await eventually(async () => {
    const { rowCount } = await sql.query(
      `select from pg_stat_activity where datname = current_database() and application_name like 'aftercommit:%:' || $1`,
      [String(pid)],
    )
    return rowCount === 0
  })
}

/** From now on nobody takes over because a lease ran out, however slow the machine is. */
export async function prolongLeases(sql: pg.Client): Promise<void> {
  await sql.query(
    `update aftercommit.processes set lease_until = clock_timestamp() + interval '1 hour' where lease is not null`,
  )
}

export interface Entry {
  readonly what: 'begin' | 'end'
  readonly subscription: string
  readonly id: string
  readonly key: string
  readonly position: bigint
  readonly pid: number
  readonly attempt: number
  readonly idempotencyKey: string
}

export interface FileLedger {
  readonly path: string
  /** A file that behaviours wait for, there once it is made. */
  flag(name: string): { readonly path: string; raise(): void }
  entries(subscription?: string): Entry[]
  /** In the order in which they were written, each with its repetitions. */
  ended(subscription?: string): Entry[]
  /** Resolves when so many different events have come to their end. */
  reaches(events: number, options?: { subscription?: string; deadline?: number }): Promise<void>
}

export function fileLedger(): FileLedger {
  const folder = mkdtempSync(join(tmpdir(), 'ac-ledger-'))
  const path = join(folder, 'ledger')
  appendFileSync(path, '')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // Read on from where the last look ended: a chaos run looks often at a long file.
  const known: Entry[] = []
  let consumed = 0
  const refresh = () => {
    const bytes = readFileSync(path)
    const whole = bytes.subarray(consumed, bytes.lastIndexOf(10) + 1)
    consumed += whole.length
    for (const line of whole.toString().split('\n')) {
      if (line === '') continue
      const entry = JSON.parse(line)
      known.push({ ...entry, position: BigInt(entry.position) })
    }
  }
  const entries = (subscription = 'sub') => {
    refresh()
    return known.filter((entry) => entry.subscription === subscription)
  }
  const ended = (subscription?: string) => entries(subscription).filter(({ what }) => what === 'end')
  return {
    path,
    flag(name) {
      const file = join(folder, name)
      return { path: file, raise: () => appendFileSync(file, '') }
    },
    entries,
    ended,
    async reaches(events, { subscription, deadline = 60_000 } = {}) {
      await eventually(() => new Set(ended(subscription).map(({ id }) => id)).size >= events, { deadline, every: 50 })
    },
  }
}

/** How often events came to their end beyond the first time. */
export function duplicatesIn(entries: readonly Entry[]): number {
  return entries.length - new Set(entries.map(({ id }) => id)).size
}

/** The first end of each event of a key comes in the order of positions, whoever handled it. */
export function expectOrderPerKey(ended: readonly Entry[]): void {
  const seen = new Set<string>()
  const last = new Map<string, bigint>()
  const violations: string[] = []
  for (const { id, key, position } of ended) {
    if (seen.has(id)) continue
    seen.add(id)
    if (position < (last.get(key) ?? 0n)) violations.push(`${id} (${position}) after ${last.get(key)} of ${key}`)
    last.set(key, position)
  }
  expect(violations).toEqual([])
}

/** One key per event and subscription, the same in every try and never shared. */
export function expectIdempotencyKeys(entries: readonly Entry[]): void {
  const keys = new Map<string, string>()
  const owners = new Map<string, string>()
  for (const { subscription, id, idempotencyKey } of entries) {
    const call = `${subscription} ${id}`
    expect(keys.get(call) ?? idempotencyKey).toBe(idempotencyKey)
    expect(owners.get(idempotencyKey) ?? call).toBe(call)
    keys.set(call, idempotencyKey)
    owners.set(idempotencyKey, call)
  }
}

/** Every checkpoint that is written, in the order in which the row was locked, beside the product's own tables. */
export async function watchCheckpoints(sql: pg.Client) {
  await sql.query(`
    create table if not exists public.checkpoint_writes (n bigserial, id text, term bigint, position bigint);
    create or replace function public.note_checkpoint() returns trigger language plpgsql as $$
    begin
      insert into public.checkpoint_writes (id, term, position) values (new.id, new.term, new.position);
      return null;
    end $$;
    create or replace trigger note_checkpoint after update on aftercommit.subscription_partitions
      for each row execute function public.note_checkpoint()`)
  return {
    /** What an owner had finished and not written down when the next one took over. */
    async unwrittenBy({ pid }: TestProcess, ledger: FileLedger): Promise<number> {
      const { rows } = await sql.query('select min(position) as position from public.checkpoint_writes where term > 1')
      const taken = BigInt(rows[0].position)
      return ledger.ended().filter((entry) => entry.pid === pid && entry.position > taken).length
    },
    /** No lower term after a higher one, and nothing moves back. */
    async expectMonotonic(connection: pg.Client = sql): Promise<void> {
      const { rows } = await connection.query(
        `select * from (
           select n, id, term, position, lag(term) over w as term_before, lag(position) over w as position_before
             from public.checkpoint_writes window w as (partition by id order by n)) m
          where term < term_before or position < position_before`,
      )
      expect(rows).toEqual([])
    },
  }
}
