/**
 * What a steady 1,000 deliveries a second leave behind: ours and graphile-worker side by side on one server, each drained
 * by its own worker, for 150 s or `--seconds`, whichever is longer. The server counts the dead rows, once a second.
 * Everything dead in the catalog is held against us: nobody else truncates tables here.
 *
 * Where vacuum cleans up, dead rows climb for a minute and then fall to almost none, so the last sample is luck: it is
 * shown, and what is compared at the end is the last minute, which holds one whole climb (`autovacuum_naptime`).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { makeWorkerUtils, run as runGraphile } from 'graphile-worker'
import pg from 'pg'
import { connect, withLog } from '../measure.mjs'
import { openOurs } from './deliver.mjs'

const PER_SECOND = 1_000
const TICK_MS = 20
const LEAST_MS = 150_000
const OURS = 'bench_bloat'
const PEERS = 'bench_bloat_graphile'
/** Of graphile-worker's dead rows. */
const WANTED = 0.1
const words = { mean: 'mean', worst: 'worst', lastMinute: 'last minute' }

export function run({ url, ms }) {
  const lastMs = Math.max(LEAST_MS, ms)
  return withLog(url, OURS, async () => {
    const ours = await openOurs(url, OURS)
    const peers = await openGraphile(url)
    const { clients, end } = await connect(url, 1)
    const stopped = new AbortController()
    const sampling = sample(clients[0], stopped.signal)
    const writing = [
      keepAdding(lastMs, (count) => ours.delivering.add(ours.database, Array.from({ length: count }, ourJob))),
      keepAdding(lastMs, (count) => peers.addJobs(Array.from({ length: count }, peerJob))),
    ]
    const added = await Promise.all(writing)
    const waiting = await countWaiting(clients[0])
    stopped.abort()
    const samples = await sampling
    await end()
    await ours.end()
    await peers.end()
    return report(lastMs, samples, { added, waiting })
  })
}

function report(lastMs, samples, { added, waiting }) {
  const dead = (who) => describe(samples.map((sample) => sample[who].dead))
  const [mine, theirs, catalog] = [dead('ours'), dead('peers'), dead('catalog')]
  const shown = ({ mean, worst, lastMinute, last }) =>
    `mean ${round(mean)}, worst ${round(worst)}, last minute ${round(lastMinute)}, last ${round(last)}`
  const sizes = (who) => shown(describe(samples.map((sample) => sample[who].bytes / 1_024)))
  const goal = (what) => {
    const ratio = (mine[what] + catalog[what]) / theirs[what]
    return {
      what: `${words[what]} of aftercommit and the catalog / graphile-worker`,
      value: ratio.toFixed(3),
      wanted: `goal ≤ ${WANTED}`,
      met: ratio <= WANTED,
    }
  }
  return {
    title: `bloat: ${round(PER_SECOND)} deliveries a second for ${lastMs / 1_000} s, side by side`,
    figures: [
      ['aftercommit, dead rows', shown(mine)],
      ['the catalog, dead rows', shown(catalog)],
      ['graphile-worker, dead rows', shown(theirs)],
      ['aftercommit, kB', sizes('ours')],
      ['graphile-worker, kB', sizes('peers')],
      ['added', added.map(round).join(' and ')],
      ['waiting at the end', waiting.map(round).join(' and ')],
    ],
    goals: Object.keys(words).map(goal),
  }
}

/** So many by now, whatever the ticks were: a slow moment is made up for. Answers how many were added. */
async function keepAdding(lastMs, add) {
  const began = performance.now()
  let added = 0
  while (performance.now() - began < lastMs) {
    const owed = Math.floor(((performance.now() - began) * PER_SECOND) / 1_000) - added
    if (owed > 0) await add(owed)
    added += owed
    await sleep(TICK_MS)
  }
  return added
}

async function sample(client, signal) {
  const samples = []
  // The first seconds are not of a steady stream.
  await sleep(5_000)
  while (!signal.aborted) {
    const { rows } = await client.query(
      `select schemaname, sum(n_dead_tup)::float8 as dead, sum(pg_total_relation_size(relid))::float8 as bytes
         from pg_stat_all_tables
        where schemaname in ('${OURS}', '${PEERS}', 'pg_catalog')
        group by schemaname`,
    )
    const of = (schema) => rows.find(({ schemaname }) => schemaname === schema)
    samples.push({ ours: of(OURS), peers: of(PEERS), catalog: of('pg_catalog') })
    await sleep(1_000)
  }
  return samples
}

/** A side that does not keep up would have fewer dead rows than it owes. */
async function countWaiting(client) {
  const { rows } = await client.query(
    `select (select count(*) from ${OURS}.deliveries)::integer as ours,
            (select count(*) from ${PEERS}._private_jobs)::integer as peers`,
  )
  return [rows[0].ours, rows[0].peers]
}

function describe(numbers) {
  const mean = (some) => some.reduce((sum, number) => sum + number, 0) / some.length
  return {
    mean: mean(numbers),
    worst: Math.max(...numbers),
    lastMinute: mean(numbers.slice(-60)),
    last: numbers.at(-1),
  }
}

function round(number) {
  return Math.round(number).toLocaleString('en')
}

function ourJob(_, n) {
  return { kind: 'effect', name: 'nothing', owner: 'bench', payload: { n } }
}

function peerJob(_, n) {
  return { identifier: 'nothing', payload: { n } }
}

async function openGraphile(url) {
  const pgPool = new pg.Pool({ connectionString: url, max: 12 })
  pgPool.on('error', () => {})
  pgPool.on('connect', (client) => client.on('error', () => {}))
  const logger = { scope: () => logger, error() {}, warn() {}, info() {}, debug() {} }
  const runner = await runGraphile({
    pgPool,
    schema: PEERS,
    noHandleSignals: true,
    logger,
    taskList: { nothing: async () => {} },
    preset: {
      worker: { concurrentJobs: 50, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
    },
  })
  const utils = await makeWorkerUtils({ pgPool, schema: PEERS, logger })
  return {
    addJobs: (jobs) => utils.addJobs(jobs),
    async end() {
      await runner.stop()
      await utils.release()
      await pgPool.query(`drop schema ${PEERS} cascade`)
      await pgPool.end()
    },
  }
}
