/**
 * Durable work that does nothing: inserted in batches of 500, claimed, run and completed. Against the same in bare SQL
 * (claim with SKIP LOCKED, delete by id) and against graphile-worker with its local queue. The variants take turns, and a
 * turn ends for each of them when its last row is gone, not when the last job has run.
 */
import { randomUUID } from 'node:crypto'
import { makeWorkerUtils, run as runGraphile } from 'graphile-worker'
import pg from 'pg'
import { createDelivering } from '../../dist/delivery/index.js'
import { createDatabase } from '../../dist/postgres/index.js'
import { createHealth, createRegistry, parseRetry, silentLogger, systemClock } from '../../dist/runtime/index.js'
import { atLeast } from '../goals.mjs'
import { connect, median, perSecond, withLog } from '../measure.mjs'

const JOBS = 20_000
const BATCH = 500

export function run({ url, rounds }) {
  return withLog(url, 'bench_deliver', async () => {
    const ours = await openOurs(url)
    const bare = await openBare(url)
    const graphile = await openGraphile(url)
    const variants = { ours, bare, graphile }
    const rates = { ours: [], bare: [], graphile: [] }
    for (let round = -1; round < rounds; round++) {
      for (const [name, { round: play }] of Object.entries(variants)) {
        const began = performance.now()
        await play()
        if (round >= 0) rates[name].push((JOBS * 1_000) / (performance.now() - began))
      }
    }
    for (const { end } of Object.values(variants)) await end()
    const [mine, raw, peer] = [median(rates.ours), median(rates.bare), median(rates.graphile)]
    return {
      title: `deliver: ${JOBS.toLocaleString('en')} deliveries inserted, claimed, run and completed`,
      figures: [
        ['aftercommit', perSecond(mine)],
        ['bare claim + delete in batches of 500', perSecond(raw)],
        ['graphile-worker, local queue of 500', perSecond(peer)],
      ],
      goals: [atLeast('aftercommit / bare', mine / raw, 0.6), atLeast('aftercommit / graphile-worker', mine / peer, 1)],
    }
  })
}

/** A worker by itself, as the library builds it. */
export async function openOurs(url, schema = 'bench_deliver', words = {}) {
  const database = createDatabase({ database: url, schema })
  const delivering = createDelivering({
    database,
    clock: systemClock,
    logger: silentLogger,
    metrics: createRegistry({ clock: systemClock, logger: silentLogger }),
    health: createHealth({ clock: systemClock }),
    process: randomUUID(),
    lock: () => ({ holds: false, possible: false }),
    willHear: () => false,
    storeStacks: false,
    concurrency: 50,
    drainMs: () => 10_000,
    ...words,
  })
  let left = 0
  let done = () => {}
  delivering.register({
    kind: 'effect',
    name: 'nothing',
    retry: parseRetry(),
    timeoutMs: 30_000,
    run() {
      left--
      if (left === 0) done()
    },
    toEvent() {
      throw new Error('nothing fails here')
    },
  })
  await delivering.service.start()
  return {
    delivering,
    database,
    async round() {
      left = JOBS
      const drained = new Promise((resolve) => {
        done = resolve
      })
      for (let first = 0; first < JOBS; first += BATCH) await delivering.add(database, deliveries(first))
      await drained
      await untilGone(database, `${schema}.deliveries`)
    },
    async end() {
      await delivering.service.stop()
      await database.close()
    },
  }
}

/** A look takes a fraction of a millisecond of a turn that takes a second. */
async function untilGone(db, table) {
  while ((await db.query(`select 1 from ${table} limit 1`)).rows.length > 0);
}

function deliveries(first) {
  return Array.from({ length: BATCH }, (_, i) => ({
    kind: 'effect',
    name: 'nothing',
    owner: 'bench',
    payload: { n: first + i },
  }))
}

async function openBare(url) {
  const { clients, end } = await connect(url, 2)
  const [writer, worker] = clients
  await writer.query(`create table bench_deliver.bare (id bigint generated always as identity primary key,
    name text not null, payload jsonb not null, run_at timestamptz not null default clock_timestamp(),
    attempts integer not null default 0, token bigint) with (fillfactor = 50)`)
  await writer.query('create index on bench_deliver.bare (run_at) where token is null')
  const drain = async () => {
    for (let left = JOBS; left > 0; ) {
      const { rows } = await worker.query(
        `update bench_deliver.bare set token = $1, attempts = attempts + 1
          where id = any (array(select id from bench_deliver.bare where token is null and run_at <= now()
                                 order by run_at limit ${BATCH} for update skip locked))
        returning id, name, payload, attempts`,
        [left],
      )
      left -= rows.length
      if (rows.length > 0)
        await worker.query('delete from bench_deliver.bare where id = any ($1)', [rows.map(({ id }) => id)])
    }
  }
  return {
    async round() {
      const drained = drain()
      for (let first = 0; first < JOBS; first += BATCH) {
        const payloads = deliveries(first).map(({ payload }) => payload)
        await writer.query(
          `insert into bench_deliver.bare (name, payload) select 'nothing', p from jsonb_array_elements($1) p`,
          [JSON.stringify(payloads)],
        )
      }
      await drained
    },
    end,
  }
}

async function openGraphile(url) {
  let left = 0
  let done = () => {}
  const pgPool = new pg.Pool({ connectionString: url, max: 12 })
  pgPool.on('error', () => {})
  pgPool.on('connect', (client) => client.on('error', () => {}))
  const runner = await runGraphile({
    pgPool,
    schema: 'bench_graphile',
    noHandleSignals: true,
    logger: quiet(),
    taskList: {
      nothing: async () => {
        left--
        if (left === 0) done()
      },
    },
    preset: {
      worker: { concurrentJobs: 50, localQueue: { size: BATCH }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
    },
  })
  const utils = await makeWorkerUtils({ pgPool, schema: 'bench_graphile', logger: quiet() })
  return {
    async round() {
      left = JOBS
      const drained = new Promise((resolve) => {
        done = resolve
      })
      for (let first = 0; first < JOBS; first += BATCH) {
        await utils.addJobs(deliveries(first).map(({ payload }) => ({ identifier: 'nothing', payload })))
      }
      await drained
      await untilGone(pgPool, 'bench_graphile._private_jobs')
    },
    async end() {
      await runner.stop()
      await utils.release()
      await pgPool.query('drop schema bench_graphile cascade')
      await pgPool.end()
    },
  }
}

function quiet() {
  const logger = { scope: () => logger, error() {}, warn() {}, info() {}, debug() {} }
  return logger
}
