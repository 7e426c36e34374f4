/**
 * A subscription 200,000 events behind, with a handler that does nothing or reads the payload, against bare pages. The
 * bare reader gets every payload parsed, by pg; a subscription parses the ones that its handler looks at.
 */
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, median, medianRatio, payload, perSecond, withLog } from '../measure.mjs'

const events = 200_000
const page = 500

export function run({ url, rounds }) {
  return withLog(url, 'bench_catchup', async (ac) => {
    const { clients, end } = await connect(url, 1)
    for (let done = 0; done < events; done += 1_000) {
      const batch = () => ({ type: 'order.placed', aggregate: { type: 'order', id: uuidv7() }, payload })
      await ac.emitNow(clients[0], Array.from({ length: 1_000 }, batch))
    }
    await clients[0].query('vacuum analyze bench_catchup.events')
    await clients[0].query('create table bench_catchup.own_checkpoint (id int primary key, position bigint)')
    await clients[0].query('insert into bench_catchup.own_checkpoint values (1, 0)')
    await clients[0].query('create table bench_catchup.seen (position bigint)')
    await ac.start()
    const rates = { bare: [], coalesced: [], reading: [], updates: [], sync: [], byHand: [], transactional: [] }
    for (let round = 0; round <= rounds; round++) {
      const found = {
        bare: await time(events, () => readBare(clients[0])),
        coalesced: await time(events, () => subscribe(ac, `c${round}`, events, {})),
        reading: await time(events, () => subscribe(ac, `r${round}`, events, { look: (event) => event.payload.total })),
        updates: await time(3_000, () => updateEach(clients[0], 3_000)),
        sync: await time(3_000, () => subscribe(ac, `s${round}`, 3_000, { checkpoint: 'sync' })),
        byHand: await time(50_000, () => insertByHand(clients[0], 50_000)),
        transactional: await time(50_000, () =>
          subscribe(ac, `t${round}`, 50_000, { transactional: true, handleBatch: insertBatch }),
        ),
      }
      if (round > 0) for (const [name, rate] of Object.entries(found)) rates[name].push(rate)
    }
    await end()
    const middle = Object.fromEntries(Object.entries(rates).map(([name, all]) => [name, median(all)]))
    return {
      title: `catchup: a subscription that is ${events.toLocaleString('en')} events behind`,
      figures: [
        [`bare pages of ${page}`, perSecond(middle.bare)],
        ['no-op handler, default checkpoint', perSecond(middle.coalesced)],
        ['handler that reads the payload', perSecond(middle.reading)],
        ['one bare UPDATE per event', perSecond(middle.updates)],
        ["no-op handler, checkpoint: 'sync'", perSecond(middle.sync)],
        ['batches of 100 by hand: insert, update, commit', perSecond(middle.byHand)],
        ['the same as transactional handleBatch', perSecond(middle.transactional)],
      ],
      goals: [
        atLeast('default checkpoint / bare pages', medianRatio(rates.coalesced, rates.bare), 0.7),
        atLeast('the same, reading the payload', medianRatio(rates.reading, rates.bare), 0.7),
        atLeast('sync / bare UPDATE per event', medianRatio(rates.sync, rates.updates), 0.8),
        atLeast('transactional batches / by hand', medianRatio(rates.transactional, rates.byHand), 0.5),
      ],
    }
  })
}

async function time(count, work) {
  const began = performance.now()
  await work()
  return (count * 1_000) / (performance.now() - began)
}

/** Runs until the subscription has seen so many events, then ends it. */
function subscribe(ac, id, count, { handleBatch, look, ...options }) {
  return new Promise((resolve, reject) => {
    let seen = 0
    const saw = (events) => {
      seen += events
      if (seen >= count && seen - events < count) subscription.stop().then(resolve, reject)
    }
    const handler = handleBatch
      ? {
          async handleBatch(batch, context) {
            await handleBatch(batch, context)
            saw(batch.length)
          },
        }
      : {
          handle(event) {
            look?.(event)
            saw(1)
          },
        }
    const subscription = ac.subscribe({ id, ...options, ...handler })
  })
}

async function insertBatch(batch, { tx }) {
  await tx.query('insert into bench_catchup.seen select unnest(($1::text)::bigint[])', [
    `{${batch.map((event) => event.position).join(',')}}`,
  ])
}

async function readBare(client) {
  let position = '0'
  for (;;) {
    const { rows } = await client.query(
      'select * from bench_catchup.events where position > $1 order by position limit $2',
      [position, page],
    )
    if (rows.length === 0) return
    position = rows.at(-1).position
  }
}

async function updateEach(client, count) {
  for (let i = 1; i <= count; i++)
    await client.query('update bench_catchup.own_checkpoint set position = $1 where id = 1', [i])
}

async function insertByHand(client, count) {
  let position = '0'
  for (let done = 0; done < count; done += 100) {
    const { rows } = await client.query(
      'select * from bench_catchup.events where position > $1 order by position limit 100',
      [position],
    )
    position = rows.at(-1).position
    await client.query('begin')
    await client.query('insert into bench_catchup.seen select unnest($1::bigint[])', [rows.map((row) => row.position)])
    await client.query('update bench_catchup.own_checkpoint set position = $1 where id = 1', [position])
    await client.query('commit')
  }
}
