/** A long way behind: memory stays flat, what a filter skips is passed for good, and others are not held up. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { recorder } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import type { TestProcess } from '../support/processes.ts'
import { fileLedger, startWorker } from './support/workers.ts'

beforeAll(buildPackage)

/** Straight into the table, as the owner of it may; a million calls of a function would take longer than the test. */
async function fill(sql: pg.Client, events: number, type = 'lamp.lit'): Promise<void> {
  await sql.query(
    `insert into aftercommit.events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
     select gen_random_uuid(), $2, 'lamp', (n % 1000)::text, jsonb_build_object('text', repeat('x', 200)), '{"depth": 0}', now()
       from generate_series(1, $1::int) n`,
    [events, type],
  )
  await sql.query('analyze aftercommit.events')
}

async function reportOf(worker: TestProcess): Promise<{ rss: number; files: number }> {
  const before = worker.lines.filter((line) => line.startsWith('report ')).length
  worker.send('report')
  const line = await eventually(() => worker.lines.filter((text) => text.startsWith('report '))[before])
  return JSON.parse(line.slice('report '.length))
}

describe('300,000 events behind', () => {
  it('a slow subscriber keeps its memory flat while another one in the same process catches up', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    await fill(sql, 300_000)
    const ledger = fileLedger()
    // Only a part of the events goes into the ledger of the fast one: it is a file, and slower than the reader.
    await sql.query(`update aftercommit.events set type = 'lamp.noted' where position % 1000 = 0`)
    const worker = await startWorker(ledger, {
      instance: { database: url },
      subscriptions: [
        { id: 'fast', on: ['lamp.noted'] },
        { id: 'slow', behaviour: { workMs: 4 } },
      ],
      quiet: true,
    })
    await ledger.reaches(10, { subscription: 'fast' })
    const early = await reportOf(worker)
    await ledger.reaches(300, { subscription: 'fast' })
    const slowAtThatTime = ledger.ended('slow').length
    expect(slowAtThatTime).toBeLessThan(100_000)
    await ledger.reaches(slowAtThatTime + 1_500, { subscription: 'slow' })
    const late = await reportOf(worker)
    expect(late.rss).toBeLessThan(200)
    expect(late.rss - early.rss).toBeLessThan(50)
    const slow = ledger.ended('slow').map(({ position }) => position)
    expect(slow).toEqual(slow.map((_, i) => BigInt(i + 1)))
    worker.kill('SIGTERM')
    await worker.exited
  })

  it('are handled to the end in flat memory, each once', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    await fill(sql, 300_000)
    const ac = instance({ database: url })
    let handled = 0
    let last = 0n
    let inOrder = true
    const rss: number[] = []
    ac.subscribe({
      id: 'sub',
      handle: ({ position }) => {
        inOrder &&= position === last + 1n
        last = position
        if (++handled % 50_000 === 0) rss.push(process.memoryUsage().heapUsed)
      },
    })
    expect(await ac.drain({ timeout: '2m' })).toMatchObject({ drained: true })
    expect(handled).toBe(300_000)
    expect(inOrder).toBe(true)
    expect((rss.at(-1)! - rss[0]!) / 2 ** 20).toBeLessThan(100)
  })
})

describe('a filter that matches one in a hundred thousand', () => {
  it('moves the checkpoint over what it skips, and the next process does not read that again', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    await fill(sql, 50_000)
    await fill(sql, 1, 'door.opened')
    await fill(sql, 50_000)
    const first = instance({ database: url })
    const seen = recorder()
    const handle = first.subscribe({ id: 'sub', on: ['door.*'], handle: seen.handle })
    await first.start()
    await eventually(async () => (await handle.status()).position === 100_001n, { deadline: 60_000 })
    expect(seen.calls.map(({ position }) => position)).toEqual([50_001n])
    await first.stop()
    // All that the first has read is counted before the second begins.
    const scanned = await eventScans(sql, 100_001)
    const second = instance({ database: url })
    const again = recorder()
    const next = second.subscribe({ id: 'sub', on: ['door.*'], handle: again.handle })
    await second.start()
    await fill(sql, 1, 'door.opened')
    await eventually(() => again.calls.length === 1)
    await eventually(async () => (await next.status()).position === 100_002n)
    expect(again.calls.map(({ position }) => position)).toEqual([100_002n])
    // Of the 100,001 events before, the second process has fetched next to nothing.
    expect((await eventScans(sql)) - scanned).toBeLessThan(1_000)
  })
})

/** Rows of the log that were fetched so far, by the server's own count. */
async function eventScans(sql: pg.Client, least = 0): Promise<number> {
  // Sessions report when they are idle, at most once a second; the counters are final when two looks agree.
  let before = -1
  return eventually(
    async () => {
      await sql.query('select pg_stat_clear_snapshot()')
      const { rows } = await sql.query(
        `select coalesce(sum(idx_tup_fetch + seq_tup_read), 0)::int as n from pg_stat_user_tables where relname like 'events_%'`,
      )
      const same = rows[0].n === before
      before = rows[0].n
      return same && before >= least ? before + 1 : undefined
    },
    { every: 1_200 },
  )
}
