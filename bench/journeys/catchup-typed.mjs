/**
 * A subscription that is 200,000 events behind and asks for some types only, in a log that was never analyzed. Rates count
 * the events of the log that were passed. The bare reader reads every event, page after page.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createAftercommit } from 'aftercommit'
import pg from 'pg'
import { createBenchDatabase } from '../contenders/database.mjs'
import { BARE_PAGES, OURS, OURS_JIT_OFF } from '../contenders/names.mjs'
import { atLeast } from '../goals.mjs'
import { payload } from '../measure.mjs'
import { compare, inTurns } from '../turns.mjs'

const EVENTS = 200_000
const PAGE = 500
const DEADLINE_MS = 30_000
/** `lastFromEnd` tells where in the log the last event of the share is. */
const ASKED = [
  { share: 'all', on: 'bulk.*', lastFromEnd: 0 },
  { share: '1 %', on: 'bulk.hundredth', lastFromEnd: 1 },
  { share: '0.001 %', on: 'bulk.rare', lastFromEnd: 0 },
]

export async function run(context) {
  const count = context.quick ? EVENTS / 4 : EVENTS
  const contenders = await openContenders(context, count)
  const results = []
  for (const asked of ASKED) {
    const measured = await inTurns(contenders, {
      rounds: context.rounds,
      async play(contender) {
        const began = performance.now()
        await contender.catchUp(asked)
        return (count * 1_000) / (performance.now() - began)
      },
    })
    results.push({ ...asked, rates: compare(measured, { unit: 'events/s' }) })
  }
  return {
    title: `catch-up of ${count.toLocaleString('en')} events without statistics, by the share of the types asked for`,
    figures: results.flatMap(({ share, rates }) =>
      rates.figures.map(([name, figure]) => [`${share}: ${name === BARE_PAGES ? 'all by bare pages' : name}`, figure]),
    ),
    goals: results.flatMap(({ share, rates }) => [
      ...rates.jitGoals(share),
      atLeast(`types that are ${share} / bare pages`, rates.ratio(OURS, BARE_PAGES), 0.7),
    ]),
  }
}

async function openContenders({ server, own }, count) {
  const database = await own(createBenchDatabase(server.url, 'catchup'))
  await fill(database.url, count)
  const withoutJit =
    server.about.jit === 'on' &&
    (await own(createBenchDatabase(server.url, 'catchup_jit_off', { jit: 'off', copyOf: 'catchup' })))
  return {
    [OURS]: await own(openSubscriber(database.url, count)),
    ...(withoutJit && { [OURS_JIT_OFF]: await own(openSubscriber(withoutJit.url, count)) }),
    [BARE_PAGES]: await own(openReader(database.url, count)),
  }
}

/** No table gets statistics: neither by hand nor from autovacuum. */
async function fill(url, count) {
  const ac = createAftercommit({ database: url })
  try {
    await ac.migrate()
    await ac.transaction(async (tx) => {
      const { rows } = await tx.query(
        `select format('alter table %s set (autovacuum_enabled = off)', oid::regclass) as statement
           from pg_class where relnamespace = 'aftercommit'::regnamespace and relkind = 'r'`,
      )
      for (const { statement } of rows) await tx.query(statement)
    })
    for (let first = 1; first <= count; first += 1_000) {
      const toEvent = (_, n) => ({
        type: typeOf(first + n, count),
        aggregate: { type: 'bulk', id: `${first + n}` },
        payload,
      })
      await ac.transaction((tx) => tx.emit(Array.from({ length: 1_000 }, toEvent)))
    }
  } finally {
    await ac.stop()
  }
}

function typeOf(number, count) {
  if (number === count || number === count / 2) return 'bulk.rare'
  return number === count - 1 || number % 100 === 0 ? 'bulk.hundredth' : 'bulk.common'
}

async function openSubscriber(url, count) {
  const ac = createAftercommit({ database: url })
  await ac.start()
  let turns = 0
  return {
    /** A new subscription each time, until it has handled the last event of its types. */
    async catchUp({ share, on, lastFromEnd }) {
      turns++
      const last = String(count - lastFromEnd)
      let subscription
      const caughtUp = new Promise((resolve) => {
        const handle = (event) => {
          if (event.aggregateId === last) resolve()
        }
        subscription = ac.subscribe({ id: `turn-${turns}`, on: [on], handle })
      })
      const tooLong = sleep(DEADLINE_MS, undefined, { ref: false }).then(() => {
        throw new Error(`the catch-up of ${share} took more than ${DEADLINE_MS / 1_000} s`)
      })
      await Promise.race([caughtUp, tooLong])
      await subscription.stop()
    },
    close: () => ac.stop(),
  }
}

async function openReader(url, count) {
  const client = new pg.Client(url)
  await client.connect()
  return {
    async catchUp() {
      let [position, seen] = ['0', 0]
      while (seen < count) {
        const { rows } = await client.query(
          'select * from aftercommit.events where position > $1 order by position limit $2',
          [position, PAGE],
        )
        position = rows.at(-1).position
        seen += rows.length
      }
    },
    close: () => client.end(),
  }
}
