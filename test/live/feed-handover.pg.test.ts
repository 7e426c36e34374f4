/**
 * Replay becomes live without a gap and without a duplicate, under load: four writers, a third of whose transactions roll
 * back, and twenty clients that come and go at random and resume on whichever of two instances they meet.
 */
import { expect, it } from 'vitest'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { listen, openSse, type Stream } from './sse-support.ts'

const WRITERS = 4
const CLIENTS = 20
const EVENTS = 400

it('every client gets every committed event once and in order, however often it comes and goes', async () => {
  const { feedUrl, server, ac, sql, url } = await openSse()
  const { feedUrl: elsewhere } = await server()
  const dice = seeded(20_261_115)
  const stopped = { value: false }
  const witness = await listen(feedUrl)
  await witness.placed()
  const start = witness.lastId!

  const clients = Array.from({ length: CLIENTS }, (_, number) =>
    wander(number, [feedUrl, elsewhere], start, dice, stopped),
  )
  await Promise.all(Array.from({ length: WRITERS }, (_, number) => write(url, number, dice)))
  const { id: last } = await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'last', payload: {} }))
  stopped.value = true
  const got = await Promise.all(clients)
  await witness.sees(last)

  const committed = (await sql.query('select id from aftercommit.events order by position')).rows.map(({ id }) => id)
  expect(committed).toHaveLength(WRITERS * EVENTS + 1)
  expect(witness.ids).toEqual(committed)
  for (const { ids, connections } of got) {
    expect(ids).toEqual(committed)
    expect(connections).toBeGreaterThan(3)
  }
})

/** Listens for a moment, leaves in the middle of whatever comes, and resumes where it was. */
async function wander(
  number: number,
  urls: readonly string[],
  start: string,
  dice: () => number,
  stopped: { value: boolean },
): Promise<{ ids: string[]; connections: number }> {
  const ids: string[] = []
  let lastId = start
  let connections = 0
  for (;;) {
    const stream: Stream = await listen(urls[Math.floor(dice() * urls.length)]!, { user: `client-${number}`, lastId })
    connections++
    const enough = 1 + Math.floor(dice() * 150)
    await eventually(() => stream.ids.length >= enough || (stopped.value && stream.ids.includes('last')), { every: 1 })
    stream.close()
    await stream.ended
    ids.push(...stream.ids)
    lastId = stream.lastId!
    if (ids.includes('last')) return { ids, connections }
  }
}

/** Transactions of one to five events, in which others write meanwhile; a third of them never happened. */
async function write(url: string, number: number, dice: () => number): Promise<void> {
  const client = await connect(url)
  for (let written = 0; written < EVENTS; ) {
    const size = Math.min(1 + Math.floor(dice() * 5), EVENTS - written)
    await client.query('begin')
    for (let n = 0; n < size; n++) {
      await client.query(`select aftercommit.emit('lamp.lit', 'lamp', $1, '{}')`, [String(number)])
      if (dice() < 0.1) await new Promise((resolve) => setTimeout(resolve, dice() * 5))
    }
    const keep = dice() > 1 / 3
    await client.query(keep ? 'commit' : 'rollback')
    if (keep) written += size
  }
}

/** The same every time. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}
