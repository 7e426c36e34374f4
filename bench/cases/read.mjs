/** Reading 200,000 events in order: through the tailer's iterator, and bare pages of the same size. */
import { uuidv7 } from 'uuidv7'
import { atLeast } from '../goals.mjs'
import { connect, median, payload, perSecond, withLog } from '../measure.mjs'

const events = 200_000
const page = 500

export function run({ url, rounds }) {
  return withLog(url, 'bench_read', async (ac) => {
    const { clients, end } = await connect(url, 1)
    for (let done = 0; done < events; done += 1_000) {
      const batch = () => ({ type: 'order.placed', aggregate: { type: 'order', id: uuidv7() }, payload })
      await ac.emitNow(clients[0], Array.from({ length: 1_000 }, batch))
    }
    await clients[0].query('vacuum analyze bench_read.events')
    await ac.start()
    const rates = { bare: [], library: [] }
    for (let round = -1; round < rounds; round++) {
      const bare = await time(() => readBare(clients[0]))
      const library = await time(() => readTail(ac))
      if (round < 0) continue
      rates.bare.push(bare)
      rates.library.push(library)
    }
    await end()
    return {
      title: `read: ${events.toLocaleString('en')} events in order, pages of ${page}`,
      figures: [
        ['bare pages (select *)', perSecond(median(rates.bare))],
        ['ac.log.tail', perSecond(median(rates.library))],
      ],
      goals: [atLeast('library / bare pages', median(rates.library) / median(rates.bare), 0.8)],
    }
  })
}

async function time(read) {
  const began = performance.now()
  const count = await read()
  if (count !== events) throw new Error(`read ${count} of ${events} events`)
  return (events * 1_000) / (performance.now() - began)
}

async function readBare(client) {
  let position = '0'
  let count = 0
  for (;;) {
    const { rows } = await client.query(
      'select * from bench_read.events where position > $1 order by position limit $2',
      [position, page],
    )
    if (rows.length === 0) return count
    count += rows.length
    position = rows.at(-1).position
  }
}

async function readTail(ac) {
  let count = 0
  for await (const _event of ac.log.tail({ from: 'start' })) {
    count++
    if (count === events) return count
  }
}
