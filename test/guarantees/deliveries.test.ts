/**
 * Work that was added is done, whatever happens to those who do it: killed before, within or after a call, asked to end,
 * put to sleep, cut off, or ended by the work itself. What was done is read from a file that is not the product's.
 */
import { setTimeout as breathe } from 'node:timers/promises'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { ownServer } from '../log/support/own-server.ts'
import { buildPackage } from '../support/build.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'
import { keepRunning, spreadChaos } from './support/chaos.ts'
import { createGame, openGame, timesBegun } from './support/deliverers.ts'

beforeAll(buildPackage)

/** `npm run chaos` asks for more. */
const CHAOS_MS = Number(process.env.AFTERCOMMIT_CHAOS_SECONDS ?? 6) * 1_000

describe('a process that is killed', () => {
  it('between the call and its completion: one more call about the same thing, and no dead letter', async () => {
    const game = await openGame()
    const dies = { on: 1, when: 'end', how: 'kill', times: 1 } as const
    await Promise.all([game.start({ behaviour: { dies } }), game.start({ behaviour: { dies } })])
    await game.add(1)
    await eventually(async () => game.calls('end').length === 2 && (await game.rows()) === 0)
    const [first, second] = game.calls('end')
    expect(second).toMatchObject({ id: first!.id, payload: first!.payload })
    expect(second!.pid).not.toBe(first!.pid)
    expect((await game.sql.query('select from aftercommit.letters')).rowCount).toBe(0)
  })

  it('with a batch of which 20 are done: the rest is done, and only what was under way is begun twice', async () => {
    const game = await openGame()
    const release = game.flag('release')
    const holds = Array.from({ length: 30 }, (_, n) => n + 21)
    const behaviour = { holds, holdsUntil: release.path }
    await game.add(50)
    const first = await game.start({ concurrency: 5, behaviour })
    // Twenty are done, five are under way, and at least one is claimed and not begun.
    await eventually(
      async () =>
        game.calls('begin').length === 25 && (await game.rows()) === 30 && (await game.rows('token is not null')) > 5,
    )
    first.kill('SIGKILL')
    await first.exited
    release.raise()
    const second = await game.start({ concurrency: 5, behaviour })
    await game.ends(50)
    await eventually(async () => (await game.rows()) === 0)
    const twice = [...timesBegun(game.calls())].filter(([, times]) => times > 1)
    expect(twice.map(([n, times]) => [n, times])).toEqual([21, 22, 23, 24, 25].map((n) => [n, 2]))
    const attempts = game.calls('begin').filter(({ pid }) => pid === second.pid)
    expect(Math.max(...attempts.map(({ attempt }) => attempt))).toBe(1)
  })

  it('by one delivery again and again: that one becomes a dead letter, all others are done', async () => {
    const game = await openGame()
    await game.add(30)
    const dies = { on: 17, when: 'begin', how: 'exit' } as const
    const place = keepRunning(() => game.start({ behaviour: { dies, workMs: 5 } }))
    const letter = await eventually(async () => (await game.sql.query('select * from aftercommit.letters')).rows[0], {
      deadline: 60_000,
    })
    await game.ends(29)
    await eventually(async () => (await game.rows()) === 0)
    expect(letter).toMatchObject({ kind: 'effect', status: 'dead' })
    expect(letter.event.payload).toEqual({ n: 17 })
    expect(letter.error.code).toBe('PROCESS_DIED')
    const begun = timesBegun(game.calls())
    // Once in company, then alone as often as it may be tried.
    expect(begun.get(17)).toBe(3)
    expect(letter.attempts).toBe(3)
    expect(new Set(game.calls('end').map(({ n }) => n)).size).toBe(29)
    expect((await game.sql.query('select from aftercommit.letters')).rowCount).toBe(1)
    await place.stop()
  })
})

describe('a process that is asked to end', () => {
  it('finishes what it has begun, gives back the rest, and nothing is done twice', async () => {
    const game = await openGame()
    const release = game.flag('release')
    // Most of it is not done before the end of one of them, and so is left for the other.
    const holds = Array.from({ length: 300 }, (_, n) => n + 101)
    const behaviour = { workMs: 50, holds, holdsUntil: release.path }
    const workers = await Promise.all([1, 2].map(() => game.start({ behaviour, drainMs: 60_000 })))
    await game.add(400)
    const { pid } = await eventually(() => game.calls('end')[0])
    const first = workers.find((worker) => worker.pid === pid)!
    first.kill('SIGTERM')
    release.raise()
    expect(await first.exited).toEqual({ code: 0, signal: null })
    await game.ends(400)
    await eventually(async () => (await game.rows()) === 0)
    expect(game.calls('begin')).toHaveLength(400)
    expect(new Set(game.calls('end').map(({ pid }) => pid)).size).toBe(2)
  })

  it('and hangs past its limit: the claim is given back at once, another process does it, and the exit code says so', async () => {
    const game = await openGame()
    const never = game.flag('never')
    const hanging = await game.start({ drainMs: 200, behaviour: { holds: [1], holdsUntil: never.path } })
    await game.add(1)
    await eventually(() => game.calls('begin').length === 1)
    const other = await game.start()
    hanging.kill('SIGTERM')
    await eventually(() => game.calls('end').some(({ pid }) => pid === other.pid))
    expect(await hanging.exited).toEqual({ code: 1, signal: null })
    expect(game.calls('begin')).toHaveLength(2)
    await eventually(async () => (await game.rows()) === 0)
  })
})

it('10,000 that are due at once are done once each by four processes, a hundred at a time', async () => {
  const game = await openGame()
  await Promise.all([1, 2, 3, 4].map(() => game.start({ concurrency: 25 })))
  await game.add(10_000)
  await eventually(async () => (await game.rows()) === 0, { deadline: 120_000, every: 100 })
  expect(game.calls('begin')).toHaveLength(10_000)
  expect(new Set(game.calls('end').map(({ n }) => n)).size).toBe(10_000)
})

it('a process that slept past its lease changes nothing when it wakes', async () => {
  const game = await openGame()
  const [early, late] = [game.flag('early'), game.flag('late')]
  const sleeper = await game.start({ behaviour: { holds: [1], holdsUntil: early.path } })
  await game.add(1)
  await eventually(() => game.calls('begin').length === 1)
  const other = await game.start({ behaviour: { holds: [1], holdsUntil: late.path } })
  sleeper.kill('SIGSTOP')
  await eventually(async () => {
    // Again if need be: a renewal that it had sent before it slept may come after.
    await game.sql.query(`update aftercommit.processes set lease_until = '-infinity' where process = $1`, [
      sleeper.process,
    ])
    return game.calls('begin').some(({ pid }) => pid === other.pid)
  })
  const before = (await game.sql.query('select * from aftercommit.deliveries')).rows
  early.raise()
  sleeper.kill('SIGCONT')
  await sleeper.waitForLine('claim lost')
  await eventually(() => game.calls('end').some(({ pid }) => pid === sleeper.pid))
  // Ends in good order, so whatever it wanted to write has been written.
  sleeper.kill('SIGTERM')
  await sleeper.exited
  expect((await game.sql.query('select * from aftercommit.deliveries')).rows).toEqual(before)
  late.raise()
  await eventually(async () => (await game.rows()) === 0)
  expect(game.calls('begin')).toHaveLength(2)
  expect((await game.sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

it('two processes that say the same of themselves leave each other the claims', async () => {
  const game = await openGame()
  const release = game.flag('release')
  const behaviour = { holds: [1], holdsUntil: release.path }
  const words = { host: 'web-1', pid: 1 }
  await game.start({ behaviour, words, concurrency: 1 })
  await game.add(1)
  await eventually(() => game.calls('begin').length === 1)
  const second = await game.start({ behaviour, words })
  await game.add(20, { payload: { n: 2 } })
  await eventually(() => game.calls('end').some(({ pid }) => pid === second.pid))
  release.raise()
  await eventually(async () => (await game.rows()) === 0)
  expect(game.calls('begin')).toHaveLength(21)
})

describe('a database that goes away', () => {
  it('with everything else going wrong too: nothing is lost, and only what was under way is repeated', {
    timeout: CHAOS_MS + 240_000,
  }, async () => {
    const server = await ownServer()
    await instance({ database: server.url }).migrate()
    let sql = await connect(server.url)
    const game = createGame({ url: server.url, sql, add: async () => {} })
    const retry = { maxAttempts: 50 }
    const places = [1, 2].map(() =>
      keepRunning(() => game.start({ works: [{ name: 'mail', retry, behaviour: { workMs: 20 } }], concurrency: 5 })),
    )
    // Ten at a time, told by the answer to COMMIT: what has none may or may not be there.
    const added: number[] = []
    let adding = true
    const adder = (async () => {
      for (let n = 1; adding; n += 10) {
        const numbers = Array.from({ length: 10 }, (_, i) => n + i)
        await addNumbers(sql, numbers).then(
          () => added.push(...numbers),
          async () => {
            sql = await connect(server.url).catch(() => sql)
          },
        )
        await breathe(100)
      }
    })()
    const faults = await spreadChaos({ server, places, sql: () => connect(server.url).catch(() => null) }, CHAOS_MS)
    adding = false
    await adder
    sql = await connect(server.url)
    const left = async () => (await sql.query('select from aftercommit.deliveries')).rowCount
    await eventually(async () => (await left()) === 0, { deadline: 120_000 }).catch(async (error) => {
      const tails = places.map((place) => place.current()?.lines.slice(-20).join('\n'))
      throw new Error(`${await tellRest(sql)}\nafter ${faults.join(', ')}\n${tails.join('\n--\n')}`, { cause: error })
    })
    const ended = new Set(game.calls('end').map(({ n }) => n))
    const told = `after ${faults.join(', ')}`
    expect(
      added.filter((n) => !ended.has(n)),
      `lost ${told}`,
    ).toEqual([])
    expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
    const begun = game.calls('begin')
    const repeated = begun.length - new Set(begun.map(({ id }) => id)).size
    expect(repeated, `repeated ${told}`).toBeLessThanOrEqual(faults.length * 2 * 5)
    for (const place of places) {
      await place.running()
      expect(await place.stop()).toEqual({ code: 0, signal: null })
    }
    const lines = places.flatMap(({ past }) => past.flatMap((worker) => worker.lines))
    expect(lines.filter((line) => line.startsWith('UNHANDLED'))).toEqual([])
  })

  it('connections that are reset again and again cost at most what was under way', async () => {
    const game = await openGame()
    const proxy = await createProxy(game.url)
    await game.start({ url: proxy.url, behaviour: { workMs: 5 } })
    await game.add(300)
    const cuts = 4
    for (let n = 1; n <= cuts; n++) {
      await eventually(() => game.calls('end').length >= n * 40)
      const { accepted } = proxy
      if (n % 2 === 0) proxy.dropAll()
      else proxy.cutAfter(200)
      await eventually(() => proxy.accepted > accepted)
      proxy.pass()
    }
    await game.ends(300)
    await eventually(async () => (await game.rows()) === 0, { deadline: 60_000 })
    const twice = game.calls('begin').length - 300
    expect(twice).toBeLessThanOrEqual(cuts * 10)
    expect((await game.sql.query('select from aftercommit.letters')).rowCount).toBe(0)
  })
})

it.each(['3600000', '-3600000'])('a clock that is wrong by %s ms changes no due time', async (SHIFT_MS) => {
  const game = await openGame()
  const down = game.flag('down')
  down.raise()
  const clock = new URL('support/shifted-clock.mjs', import.meta.url).href
  await game.start({
    works: [
      { name: 'mail' },
      { name: 'fax', retry: { initialDelay: '30m', maxDelay: '30m' }, behaviour: { downWhile: down.path } },
    ],
    env: { SHIFT_MS, NODE_OPTIONS: `--import ${clock}` },
  })
  await game.add(1, { delayMs: 30 * 60_000, payload: { n: 9 } })
  await game.add(1, { delayMs: 100 })
  await game.add(1, { name: 'fax', payload: { n: 2 } })
  await game.ends(1)
  // Before its first attempt the fax is due at once.
  await eventually(() => game.calls('refused').length)
  const { rows } = await eventually(async () => {
    const found = await game.sql.query(
      `select extract(epoch from run_at - clock_timestamp()) as seconds from aftercommit.deliveries where token is null`,
    )
    return found.rowCount === 2 ? found : undefined
  })
  for (const { seconds } of rows) expect(Math.abs(Number(seconds) - 1_800)).toBeLessThan(600)
  expect(timesBegun(game.calls())).toEqual(
    new Map([
      [1, 1],
      [2, 1],
    ]),
  )
})

async function addNumbers(sql: pg.Client, numbers: readonly number[]): Promise<void> {
  await sql.query(
    `select aftercommit.add_deliveries((
       select jsonb_agg(jsonb_build_object('owner', 'shop', 'payload', jsonb_build_object('n', n),
                'lane', aftercommit.delivery_lane('effect', 'mail', '', '', 0::smallint)))
         from unnest($1::int[]) n))`,
    [numbers],
  )
}

/** What is left, and who should be at it. */
async function tellRest(sql: pg.Client): Promise<string> {
  const { rows: left } = await sql.query(
    `select segment, id::text, worker, alone, attempts, run_at > now() as later, token is not null as claimed from aftercommit.deliveries`,
  )
  const { rows: workers } = await sql.query(
    `select w.worker, w.process, l.lease is not null as alive, w.running
       from aftercommit.delivery_workers w left join aftercommit.live_leases l on l.lease = w.worker`,
  )
  return JSON.stringify({ left, workers }, null, 1)
}
