/**
 * One owner at a time. When it dies another process takes over long before the lease ends; when it was only asleep, what
 * it still believes to own is refused. A trigger in the test's own table notes every write of a checkpoint with its term.
 */
import { setTimeout as breathe } from 'node:timers/promises'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { emitMany } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import type { TestProcess } from '../support/processes.ts'
import {
  duplicatesIn,
  expectOrderPerKey,
  fileLedger,
  prolongLeases,
  startWorker,
  type WorkerSubscription,
  watchCheckpoints,
} from './support/workers.ts'

beforeAll(buildPackage)

async function openGame(subscription: Partial<WorkerSubscription> = {}, ledger = fileLedger()) {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  const options = { instance: { database: url }, subscriptions: [{ id: 'sub', ...subscription }] }
  return { url, sql, ledger, writes: await watchCheckpoints(sql), start: () => startWorker(ledger, options) }
}

/** One whose handler stays at an event until it is released: the owner is met there, and not after it has done all. */
async function openHeldGame(on: string) {
  const ledger = fileLedger()
  const release = ledger.flag('release')
  const game = await openGame({ behaviour: { workMs: 5, holds: { on, until: release.path } } }, ledger)
  return { ...game, release, isHeld: () => eventually(() => ledger.entries().some(({ id }) => id === on)) }
}

describe('an owner that is killed', () => {
  it('is replaced long before its lease ends, under load, without loss and in order', async () => {
    const { sql, ledger, writes, start } = await openGame({ concurrency: 4, behaviour: { workMs: 3 } })
    const [first, second] = [await start(), await start()]
    const writer = keepWriting(sql)
    await owns(sql, first)
    await ledger.reaches(300)
    first.kill('SIGKILL')
    await first.exited
    await prolongLeases(sql)
    await eventually(() => ledger.ended().some(({ pid }) => pid === second.pid))
    const written = await writer.stop()
    await ledger.reaches(written)
    expect(new Set(ledger.ended().map(({ id }) => id)).size).toBe(written)
    expectOrderPerKey(ledger.ended())
    // What was done twice is what had been finished since the last write.
    expect(duplicatesIn(ledger.ended())).toBeLessThanOrEqual(await writes.unwrittenBy(first, ledger))
    await writes.expectMonotonic()
  })

  it('as soon as it has started is replaced just as fast', async () => {
    const { sql, ledger, start } = await openGame()
    const first = await start()
    await emitMany(sql, 5)
    await ledger.reaches(5)
    first.kill('SIGKILL')
    await first.exited
    await prolongLeases(sql)
    const second = await start()
    await emitMany(sql, 5, { prefix: 'more-' })
    await ledger.reaches(10)
    expect(ledger.ended().filter(({ pid }) => pid === second.pid).length).toBeGreaterThanOrEqual(5)
  })
})

describe('an owner that sleeps', () => {
  it('and lost its session meanwhile: what it writes when it wakes is refused by its term', async () => {
    const { sql, ledger, writes, start, release, isHeld } = await openHeldGame('event-31')
    const [first, second] = [await start(), await start()]
    await emitMany(sql, 400, { keys: 5 })
    await owns(sql, first)
    await isHeld()
    first.kill('SIGSTOP')
    await prolongLeases(sql)
    await sql.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name like 'aftercommit:listen %' || $1`,
      [String(first.pid)],
    )
    const atSleep = ledger.entries().filter(({ pid }) => pid === first.pid).length
    release.raise()
    await eventually(() => ledger.ended().some(({ pid }) => pid === second.pid))
    await ledger.reaches(200)
    first.kill('SIGCONT')
    await ledger.reaches(400)
    // It may finish the call it was in, and begin one more before it has heard of the end of its session.
    const woken = ledger
      .entries()
      .filter(({ pid }) => pid === first.pid)
      .slice(atSleep)
    expect(woken.filter(({ what }) => what === 'begin').length).toBeLessThanOrEqual(1)
    expectOrderPerKey(ledger.ended())
    await writes.expectMonotonic()
    await owns(sql, second)
  })

  it('past its lease is replaced at its end, begins nothing when it wakes, and can take over again later', async () => {
    const { sql, ledger, writes, start, release, isHeld } = await openHeldGame('event-21')
    const [first, second] = [await start(), await start()]
    await emitMany(sql, 60, { keys: 5 })
    await owns(sql, first)
    await isHeld()
    first.kill('SIGSTOP')
    const atSleep = ledger.entries().filter(({ pid }) => pid === first.pid).length
    release.raise()
    await ledger.reaches(60, { deadline: 40_000 })
    first.kill('SIGCONT')
    await emitMany(sql, 20, { prefix: 'awake-' })
    await ledger.reaches(80)
    const woken = ledger
      .entries()
      .filter(({ pid }) => pid === first.pid)
      .slice(atSleep)
    expect(woken.filter(({ what }) => what === 'begin')).toEqual([])
    await writes.expectMonotonic()
    second.kill('SIGTERM')
    await second.exited
    await emitMany(sql, 5, { prefix: 'later-' })
    await ledger.reaches(85)
    expect(ledger.ended().at(-1)!.pid).toBe(first.pid)
    expectOrderPerKey(ledger.ended())
  })
})

describe('several processes', () => {
  it('of one host, started while another still runs: none takes what another has, and each event is handled once', async () => {
    const { sql, ledger, writes, start } = await openGame({ behaviour: { workMs: 1 } })
    await start()
    const writer = keepWriting(sql)
    await ledger.reaches(50)
    await Promise.all([start(), start(), start()])
    await ledger.reaches(1_000)
    const written = await writer.stop()
    await ledger.reaches(written)
    expect(duplicatesIn(ledger.ended())).toBe(0)
    expect(new Set(ledger.entries().map(({ pid }) => pid)).size).toBe(1)
    const { rows } = await sql.query('select distinct term from public.checkpoint_writes')
    expect(rows).toEqual([{ term: '1' }])
    await writes.expectMonotonic()
  })
})

/** A session that emits some 400 events a second until it is told to stop; answers how many there are. */
function keepWriting(sql: pg.Client) {
  let running = true
  let written = 0
  const ended = (async () => {
    while (running) {
      await emitMany(sql, 10, { prefix: `w${written}-`, keys: 10 })
      written += 10
      await breathe(25)
    }
  })()
  ended.catch(() => {})
  return {
    async stop(): Promise<number> {
      running = false
      await ended
      return written
    },
  }
}

/** Resolves when the row says that this process is the owner. */
async function owns(sql: pg.Client, worker: TestProcess): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql.query(
      `select r.pid from aftercommit.subscription_partitions p join aftercommit.processes r on r.lease = p.owner`,
    )
    return rows[0]?.pid === worker.pid
  })
}
