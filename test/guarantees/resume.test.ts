/**
 * A process that ends, however it ends, is followed by one that goes on where it was: nothing is lost, nothing is out of
 * order, and what is done twice is only what was under way. The ledger is a file that the handlers write.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { emitMany, numbered } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import {
  duplicatesIn,
  expectIdempotencyKeys,
  expectOrderPerKey,
  fileLedger,
  isBuried,
  startWorker,
  watchCheckpoints,
} from './support/workers.ts'

beforeAll(buildPackage)

async function openGame() {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  return { url, sql, ledger: fileLedger(), writes: await watchCheckpoints(sql) }
}

const idsOf = (entries: readonly { id: string }[]) => new Set(entries.map(({ id }) => id))

describe('kill -9', () => {
  it('between effect and checkpoint: the event comes once more, with the same key, and nothing else is lost', async () => {
    const { url, sql, ledger, writes } = await openGame()
    await emitMany(sql, 100)
    const dies = { on: 'event-50', how: 'kill', when: 'end', times: 1 } as const
    const options = { instance: { database: url }, subscriptions: [{ id: 'sub', behaviour: { dies } }] }
    const first = await startWorker(ledger, options)
    await first.exited
    await isBuried(sql, first)
    const checkpoint = await checkpointOf(sql)
    expect(checkpoint).toBeLessThan(50n)

    const second = await startWorker(ledger, options)
    await ledger.reaches(100)
    const again = ledger.entries().filter(({ pid }) => pid === second.pid)
    // It begins with the first event that was not acknowledged.
    expect(again[0]!.position).toBe(checkpoint + 1n)
    const ended = ledger.ended()
    expect(ended.filter(({ id }) => id === 'event-50')).toHaveLength(2)
    expect(duplicatesIn(ended)).toBe(50 - Number(checkpoint))
    expectIdempotencyKeys(ledger.entries())
    expectOrderPerKey(ended)
    expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
    await writes.expectMonotonic()
  })

  it('before the effect: it happens once in the end', async () => {
    const { url, sql, ledger } = await openGame()
    await emitMany(sql, 20)
    const dies = { on: 'event-10', how: 'kill', when: 'begin', times: 1 } as const
    const options = {
      instance: { database: url },
      subscriptions: [{ id: 'sub', checkpoint: 'sync' as const, behaviour: { dies } }],
    }
    const first = await startWorker(ledger, options)
    await first.exited
    await startWorker(ledger, options)
    await ledger.reaches(20)
    expect(ledger.ended().map(({ id }) => id)).toEqual(numbered(20))
  })

  it('in the middle of a batch: it resumes at the first event that was not acknowledged', async () => {
    const { url, sql, ledger } = await openGame()
    await emitMany(sql, 200)
    const dies = { on: 'event-120', how: 'kill', when: 'end', times: 1 } as const
    const options = {
      instance: { database: url },
      subscriptions: [{ id: 'sub', batch: true, batchSize: 50, behaviour: { dies } }],
    }
    const first = await startWorker(ledger, options)
    await first.exited
    await isBuried(sql, first)
    const checkpoint = await checkpointOf(sql)
    expect(checkpoint % 50n).toBe(0n)
    const second = await startWorker(ledger, options)
    await ledger.reaches(200)
    const again = ledger.ended().filter(({ pid }) => pid === second.pid)
    expect(again[0]!.position).toBe(checkpoint + 1n)
    expect(idsOf(ledger.ended()).size).toBe(200)
    expectOrderPerKey(ledger.ended())
  })

  it('again and again, at any moment: what a transactional handler writes is written once for every event', async () => {
    const { url, sql, ledger, writes } = await openGame()
    await sql.query('create table effects (event_id text)')
    const options = {
      instance: { database: url },
      subscriptions: [{ id: 'sub', transactional: true, behaviour: { effects: 'effects' } }],
    }
    for (let kills = 0; kills < 3; kills++) {
      // There is always more to do, however far the last one came before it was killed.
      const before = idsOf(ledger.ended()).size
      await emitMany(sql, 300, { prefix: `${kills}-` })
      const worker = await startWorker(ledger, options)
      await ledger.reaches(before + 150)
      worker.kill('SIGKILL')
      await worker.exited
    }
    await startWorker(ledger, options)
    await eventually(async () => (await checkpointOf(sql)) === 900n)
    const { rows } = await sql.query('select count(*)::int as n, count(distinct event_id)::int as events from effects')
    expect(rows).toEqual([{ n: 900, events: 900 }])
    await writes.expectMonotonic()
  })
})

describe('SIGTERM under load', () => {
  it('finishes what is under way and ends well, and the next process repeats nothing', async () => {
    const { url, sql, ledger, writes } = await openGame()
    const options = {
      instance: { database: url },
      subscriptions: [{ id: 'sub', concurrency: 8, behaviour: { workMs: 4 } }],
    }
    for (let stops = 0; stops < 3; stops++) {
      const before = ledger.ended().length
      await emitMany(sql, 1_000, { keys: 40, prefix: `${stops}-` })
      const worker = await startWorker(ledger, options)
      await ledger.reaches(before + 200)
      worker.kill('SIGTERM')
      expect(await worker.exited).toEqual({ code: 0, signal: null })
      // Whatever was begun has come to its end.
      const mine = ledger.entries().filter(({ pid }) => pid === worker.pid)
      expect(mine.filter(({ what }) => what === 'begin')).toHaveLength(mine.length / 2)
      const { rows } = await sql.query('select owner, clean from aftercommit.subscription_partitions')
      expect(rows).toEqual([{ owner: null, clean: true }])
    }
    await startWorker(ledger, options)
    await ledger.reaches(3_000)
    expect(duplicatesIn(ledger.ended())).toBe(0)
    expectOrderPerKey(ledger.ended())
    await writes.expectMonotonic()
  })

  it('with a handler that hangs: its time runs out, the lease is given back and another process handles the event', async () => {
    const { url, sql, ledger } = await openGame()
    await emitMany(sql, 3)
    // Its tries do not run out, however late it is asked to end.
    const retry = { maxAttempts: 1_000, initialDelay: '10ms' } as const
    const hanging = await startWorker(ledger, {
      instance: { database: url },
      subscriptions: [{ id: 'sub', timeout: '1s', retry, behaviour: { workMs: 10_000_000 } }],
    })
    await eventually(() => ledger.entries().length > 0)
    hanging.kill('SIGTERM')
    expect(await hanging.exited).toEqual({ code: 0, signal: null })
    expect((await sql.query('select owner from aftercommit.subscription_partitions')).rows).toEqual([{ owner: null }])
    await startWorker(ledger, { instance: { database: url }, subscriptions: [{ id: 'sub', retry }] })
    await ledger.reaches(3)
    expect(ledger.ended().map(({ id }) => id)).toEqual(numbered(3))
  })
})

async function checkpointOf(sql: { query(text: string): Promise<{ rows: { position: string }[] }> }): Promise<bigint> {
  const { rows } = await sql.query('select position from aftercommit.checkpoints')
  return BigInt(rows[0]!.position)
}
