/** How often an event is handled more than once: never while nothing goes wrong, and hardly ever in a rolling restart. */
import { setTimeout as breathe } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { emitMany } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { duplicatesIn, expectOrderPerKey, fileLedger, startWorker, watchCheckpoints } from './support/workers.ts'

beforeAll(buildPackage)

async function openGame() {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  const ledger = fileLedger()
  const options = { instance: { database: url }, subscriptions: [{ id: 'sub', concurrency: 4 }], quiet: true }
  return { sql, ledger, writes: await watchCheckpoints(sql), start: () => startWorker(ledger, options) }
}

describe('30,000 events', () => {
  it('without a fault are handled once each, by one of three processes', async () => {
    const { sql, ledger, writes, start } = await openGame()
    await Promise.all([start(), start(), start()])
    for (let n = 0; n < 30; n++) await emitMany(sql, 1_000, { prefix: `${n}-`, keys: 100 })
    await ledger.reaches(30_000, { deadline: 120_000 })
    expect(duplicatesIn(ledger.ended())).toBe(0)
    expect(ledger.entries()).toHaveLength(60_000)
    expectOrderPerKey(ledger.ended())
    await writes.expectMonotonic()
  })

  it('over rolling restarts: none is lost, and fewer than one in a thousand comes twice', async () => {
    const { sql, ledger, writes, start } = await openGame()
    const workers = await Promise.all([start(), start(), start()])
    let written = 0
    let writing = true
    const writer = (async () => {
      while (writing || written < 10_000) {
        await emitMany(sql, 100, { prefix: `${written}-`, keys: 100 })
        written += 100
        await breathe(50)
      }
    })()
    for (let round = 0; round < 2; round++) {
      for (const place of workers.keys()) {
        workers[place]!.kill('SIGTERM')
        expect(await workers[place]!.exited).toEqual({ code: 0, signal: null })
        workers[place] = await start()
      }
    }
    writing = false
    await writer
    await ledger.reaches(written, { deadline: 120_000 })
    expect(new Set(ledger.ended().map(({ id }) => id)).size).toBe(written)
    expect(duplicatesIn(ledger.ended())).toBeLessThan(written / 1_000)
    expect(new Set(ledger.ended().map(({ pid }) => pid)).size).toBeGreaterThan(1)
    expectOrderPerKey(ledger.ended())
    await writes.expectMonotonic()
  })
})
