/**
 * Workflows: one input (an event, an effect and a timer) against a bare transaction that writes the same rows in two round
 * trips; the 10,000th input of an instance against the 10th; and 10,000 timers that are due at once. The variants take
 * turns. The journey `two-step-workflow` plays whole workflows against DBOS.
 */
import { randomUUID } from 'node:crypto'
import { accept, after, defineWorkflow } from 'aftercommit'
import pg from 'pg'
import { uuidv7 } from 'uuidv7'
import { atLeast, atMost } from '../goals.mjs'
import { connect, median, payload, percentile, perSecond, takeTurns, withLog } from '../measure.mjs'

const IN_FLIGHT = 8
const TIMERS = 10_000
const SCHEMA = 'bench_workflow'

/** Two inputs, the second returned by the effect of the first; each asks for an effect and sets a timer. */
const order = defineWorkflow({
  type: 'order_flow',
  id: ({ id }) => id,
  initial: () => ({ step: 0 }),
  evolve: ({ step }) => ({ step: step + 1 }),
  decide({ step }, { id }) {
    return accept([{ type: step === 0 ? 'placed' : 'paid', ...payload }], {
      effects: [{ type: step === 0 ? 'charge' : 'notify', id }],
      timers: [after('24h', { id }, { key: 'reminder' })],
    })
  },
})

/** The same step for ever. */
const counter = defineWorkflow({
  type: 'counter',
  id: ({ id }) => id,
  initial: () => ({ count: 0 }),
  evolve: ({ count }) => ({ count: count + 1 }),
  decide: () => accept([{ type: 'counted' }]),
})

const alarm = defineWorkflow({
  type: 'alarm',
  id: ({ id }) => id,
  initial: () => ({ rung: 0 }),
  evolve: ({ rung }, { type }) => ({ rung: rung + Number(type === 'rang') }),
  decide: (_, { id, due }) =>
    due === undefined
      ? accept([{ type: 'rang' }])
      : accept([{ type: 'set' }], { timers: [after(due, { id }, { key: 'bell' })] }),
})

export function run({ url, rounds, ms }) {
  return withLog(url, SCHEMA, async (ac) => {
    const steps = await measureSteps(ac, url, { rounds, ms })
    const latency = await measureLatency(ac)
    const growth = await measureGrowth(ac)
    const timers = await measureTimers(ac, url)
    return {
      title: 'workflow: inputs with an event, an effect and a timer each',
      figures: [
        [`execute, ${IN_FLIGHT} in flight`, perSecond(steps.ours)],
        ['bare transaction in two round trips, the same rows', perSecond(steps.bare)],
        ['execute, one in flight', `p50 ${latency.toFixed(2)} ms`],
        ['the 10th and the 10,000th input of an instance', `${growth.early.toFixed(2)} / ${growth.late.toFixed(2)} ms`],
        [`${TIMERS.toLocaleString('en')} timers due at once`, perSecond(timers.ours)],
        ['bare: claim in batches, then one transaction each', perSecond(timers.bare)],
      ],
      goals: [
        atLeast('execute / bare', steps.ours / steps.bare, 0.6),
        atMost('p50 with one in flight', latency, 2, 'ms'),
        atMost('10,000th / 10th input', growth.late / growth.early, 1.3, '×'),
        atLeast('timers / bare', timers.ours / timers.bare, 0.6),
        { ...atMost('timers that fired twice', timers.twice, 0, ''), met: timers.twice === 0 },
      ],
    }
  })
}

/** Connections that send what they are given without waiting for the answers, as ours do. */
async function pipelined(url, count) {
  const clients = Array.from({ length: count }, () => new pg.Client({ connectionString: url, pipeline: true }))
  await Promise.all(clients.map((client) => client.connect()))
  return { clients, end: () => Promise.all(clients.map((client) => client.end())) }
}

async function measureSteps(ac, url, { rounds, ms }) {
  ac.workflows.register(order)
  ac.workflows.register(counter)
  const { clients, end } = await pipelined(url, IN_FLIGHT)
  await prepareBare(clients[0])
  const rates = await takeTurns(
    {
      ours: () => ac.workflows.execute(order, { id: randomUUID() }),
      bare: (writer) => bareStep(clients[writer], randomUUID()),
    },
    { rounds, ms, writers: IN_FLIGHT },
  )
  await end()
  return rates
}

async function prepareBare(client) {
  await client.query(`create table ${SCHEMA}.bare_instances (type text, id text, version bigint not null, unique_key text,
    created_at timestamptz not null, last_event_at timestamptz not null, last_position bigint not null, primary key (type, id))`)
  await client.query(`create index on ${SCHEMA}.bare_instances (type, last_position)`)
  await client.query(
    `select ${SCHEMA}.delivery_lane('effect', 'bare', '', '', 0::smallint), ${SCHEMA}.delivery_lane('timer', 'bare', '', '', 0::smallint)`,
  )
}

/** What a programmer who knows the tables would send: lock and read; then everything else at once. */
async function bareStep(client, id) {
  client.query('begin')
  await client.query(
    `select version, clock_timestamp() from ${SCHEMA}.bare_instances where type = 'order' and id = $1 for update`,
    [id],
  )
  const eventId = uuidv7()
  const appended = client.query(
    `insert into ${SCHEMA}.events (id, type, aggregate_type, aggregate_id, version, payload, metadata, occurred_at)
     values ($1, 'order.placed', 'order', $2, 1, $3, $4, now()) returning position`,
    [eventId, id, JSON.stringify(payload), JSON.stringify({ correlation_id: eventId })],
  )
  const stored = client.query(
    `insert into ${SCHEMA}.bare_instances values ('order', $1, 1, null, now(), now(), currval('${SCHEMA}.positions'))`,
    [id],
  )
  const lane = (kind) => `(select lane from ${SCHEMA}.delivery_lanes where kind = '${kind}' and name = 'bare')`
  const added = client.query(
    `insert into ${SCHEMA}.deliveries (segment, id, lane, owner, key, unique_key, payload, run_at)
     values (1, nextval('${SCHEMA}.delivery_ids'), ${lane('effect')}, 'order', $1, null, $2, now()),
            (0, nextval('${SCHEMA}.delivery_ids'), ${lane('timer')}, 'order', $1, $1, $3, now() + interval '1 day')`,
    [id, JSON.stringify({ effect: { type: 'charge', id } }), JSON.stringify({ input: { id } })],
  )
  await Promise.all([appended, stored, added, client.query('commit')])
}

async function measureLatency(ac) {
  const times = []
  for (let n = 0; n < 1_500; n++) {
    const began = performance.now()
    await ac.workflows.execute(order, { id: randomUUID() })
    if (n >= 500) times.push(performance.now() - began)
  }
  return percentile(times, 0.5)
}

/** By turns, as the machine may have become slower: young instances beside the old one. */
async function measureGrowth(ac) {
  for (let n = 0; n < 9_900; n++) await ac.workflows.execute(counter, { id: 'old' })
  const [early, late] = [[], []]
  for (let turn = 0; turn < 100; turn++) {
    const id = `young-${turn}`
    for (let n = 1; n <= 10; n++) {
      const began = performance.now()
      await ac.workflows.execute(counter, { id })
      if (n === 10) early.push(performance.now() - began)
    }
    const began = performance.now()
    await ac.workflows.execute(counter, { id: 'old' })
    late.push(performance.now() - began)
  }
  return { early: median(early), late: median(late) }
}

async function measureTimers(ac, url) {
  ac.workflows.register(alarm)
  const ids = Array.from({ length: TIMERS }, (_, n) => `alarm-${n}`)
  for (let first = 0; first < TIMERS; first += 50) {
    await Promise.all(ids.slice(first, first + 50).map((id) => ac.workflows.execute(alarm, { id, due: '1h' })))
  }
  const bare = await bareTimers(url)
  const { clients, end } = await connect(url, 1)
  const [sql] = clients
  const lane = `(select lane from ${SCHEMA}.delivery_lanes where kind = 'timer' and name = 'alarm')`
  await sql.query(`update ${SCHEMA}.deliveries set run_at = clock_timestamp() where lane = ${lane}`)
  const began = performance.now()
  await ac.start()
  const left = async () => (await sql.query(`select from ${SCHEMA}.deliveries where lane = ${lane} limit 1`)).rowCount
  while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  const ours = (TIMERS * 1_000) / (performance.now() - began)
  const { rows } = await sql.query(
    `select count(*) filter (where version <> 2) as twice from ${SCHEMA}.workflow_instances where type = 'alarm'`,
  )
  await end()
  return { ours, bare, twice: Number(rows[0].twice) }
}

/** Rows like ours, claimed 500 at a time; each then locks its instance, deletes its row, appends and updates in a transaction. */
async function bareTimers(url) {
  const { clients, end } = await pipelined(url, 11)
  const [claimer, ...workers] = clients
  await claimer.query(`create table ${SCHEMA}.bare_timers (id bigint generated always as identity primary key, instance text not null,
    run_at timestamptz not null default clock_timestamp(), token bigint) with (fillfactor = 70)`)
  await claimer.query(`create index on ${SCHEMA}.bare_timers (run_at, id)`)
  await claimer.query(
    `insert into ${SCHEMA}.bare_timers (instance) select 'bare-' || n from generate_series(1, ${TIMERS}) n`,
  )
  await claimer.query(`insert into ${SCHEMA}.bare_instances select 'alarm', 'bare-' || n, 1, null, now(), now(), n
    from generate_series(1, ${TIMERS}) n`)
  const claim = () =>
    claimer.query(`update ${SCHEMA}.bare_timers set token = 1 where id = any (array(
      select id from ${SCHEMA}.bare_timers where token is null and run_at <= now() order by run_at, id limit 500 for update skip locked))
      returning id, instance`)
  const began = performance.now()
  let waiting = (await claim()).rows
  while (waiting.length > 0) {
    const next = claim()
    await Promise.all(
      workers.map(async (worker) => {
        for (let timer = waiting.pop(); timer; timer = waiting.pop()) await bareTimer(worker, timer)
      }),
    )
    waiting = (await next).rows
  }
  const rate = (TIMERS * 1_000) / (performance.now() - began)
  await end()
  return rate
}

async function bareTimer(client, { id, instance }) {
  client.query('begin')
  await client.query(
    `select version, clock_timestamp() from ${SCHEMA}.bare_instances where type = 'alarm' and id = $1 for update`,
    [instance],
  )
  const eventId = uuidv7()
  await Promise.all([
    client.query(`delete from ${SCHEMA}.bare_timers where id = $1 and token = 1`, [id]),
    client.query(
      `insert into ${SCHEMA}.events (id, type, aggregate_type, aggregate_id, version, payload, metadata, occurred_at)
       values ($1, 'alarm.rang', 'alarm', $2, 2, '{"type":"rang"}', $3, now())`,
      [eventId, instance, JSON.stringify({ correlation_id: eventId })],
    ),
    client.query(
      `update ${SCHEMA}.bare_instances set version = 2, last_event_at = now(), last_position = currval('${SCHEMA}.positions')
        where type = 'alarm' and id = $1`,
      [instance],
    ),
    client.query('commit'),
  ])
}
