/**
 * A minute in which everything goes wrong: workers and the owner are killed, sessions ended, the server crashed and
 * restarted, workers put to sleep, while 200 events a second are written. What must hold is read from ledgers that are
 * not the product's: the ids of the writer, the file of the handlers, a table of effects, a trigger on checkpoints.
 */
import type pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { ownServer } from '../log/support/own-server.ts'
import { buildPackage } from '../support/build.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { keepRunning, spreadChaos, startWriter } from './support/chaos.ts'
import {
  duplicatesIn,
  expectIdempotencyKeys,
  expectOrderPerKey,
  fileLedger,
  startWorker,
  watchCheckpoints,
} from './support/workers.ts'

beforeAll(buildPackage)

const CANARY = 'canary-49a1'
const CHAOS_MS = Number(process.env.AFTERCOMMIT_CHAOS_SECONDS ?? 60) * 1_000

it('whatever goes wrong, nothing is lost, invented, reordered, shared or left behind', {
  timeout: CHAOS_MS + 180_000,
}, async () => {
  const server = await ownServer()
  const ac = instance({ database: server.url })
  await ac.migrate()
  const before = await connect(server.url)
  await before.query('create table public.effects (event_id text)')
  const writes = await watchCheckpoints(before)
  const ledger = fileLedger()
  const retry = { maxAttempts: 50, initialDelay: '20ms', maxDelay: '200ms' }
  const places = Array.from({ length: 3 }, () =>
    keepRunning(() =>
      startWorker(ledger, {
        instance: { database: server.url },
        subscriptions: [
          { id: 'plain', concurrency: 4, retry, behaviour: { workMs: 4, failFirst: 0.02 } },
          { id: 'effects', transactional: true, retry, behaviour: { effects: 'public.effects', failFirst: 0.01 } },
        ],
      }),
    ),
  )
  const writer = startWriter(ac, 200, { secret: CANARY })
  const faults = await spreadChaos({ server, places, sql: () => connect(server.url).catch(() => null) }, CHAOS_MS)

  // Healed: what is left is worked off.
  await writer.stop()
  const { ids } = writer
  const told = `after ${faults.join(', ')}`
  await ledger.reaches(ids.length, { subscription: 'plain', deadline: 60_000 })
  const sql = await connect(server.url)
  await eventually(async () => (await lagOf(sql)) === 0, { deadline: 60_000 })

  const ended = ledger.ended('plain')
  const seen = new Set(ended.map(({ id }) => id))
  expect(
    ids.filter((id) => !seen.has(id)),
    `lost ${told}`,
  ).toEqual([])
  const stored = new Set((await sql.query('select id from aftercommit.events')).rows.map(({ id }) => id))
  expect(
    [...seen].filter((id) => !stored.has(id)),
    `invented ${told}`,
  ).toEqual([])
  expect(stored.size).toBe(ids.length)
  expectOrderPerKey(ended)
  expectOrderPerKey(ledger.ended('effects'))
  expectIdempotencyKeys([...ledger.entries('plain'), ...ledger.entries('effects')])
  // Four calls at a time, and what they finish between two writes of the checkpoint.
  expect(duplicatesIn(ended), `repeated ${told}`).toBeLessThanOrEqual(faults.length * 20)
  const { rows: effects } = await sql.query(
    `select count(*)::int as written, count(distinct event_id)::int as events from public.effects`,
  )
  expect(effects, `effects ${told}`).toEqual([{ written: ids.length, events: ids.length }])
  await writes.expectMonotonic(sql)
  expect((await sql.query('select event_id, error from aftercommit.letters')).rows).toEqual([])
  expect((await sql.query('select from aftercommit.parked')).rowCount).toBe(0)

  for (const { running } of places) {
    const worker = await running()
    worker.send('report')
    const report = await worker.waitForLine('report ')
    const { rss, files } = JSON.parse(report.slice('report '.length))
    expect(rss).toBeLessThan(250)
    expect(files).toBeLessThan(100)
  }
  for (const place of places) expect(await place.stop()).toEqual({ code: 0, signal: null })
  expect((await sql.query('select distinct owner, clean from aftercommit.subscription_partitions')).rows).toEqual([
    { owner: null, clean: true },
  ])
  const lines = places.flatMap(({ past }) => past.flatMap((worker) => worker.lines))
  expect(lines.filter((line) => line.startsWith('UNHANDLED'))).toEqual([])
  expect(lines.filter((line) => line.includes(CANARY))).toEqual([])
})

async function lagOf(sql: pg.Client): Promise<number> {
  const { rows } = await sql.query(
    `select ((select max(position) from aftercommit.events) - min(position))::int as lag from aftercommit.checkpoints`,
  )
  return rows[0].lag
}
