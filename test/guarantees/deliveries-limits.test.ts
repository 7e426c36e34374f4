/**
 * What destinations can take holds for all processes together: one probe while a circuit is half open, no attempt used up
 * while it is open, so many at a time and so many a second. A pause holds everywhere once it is confirmed, and whoever
 * waits costs next to nothing. Calls are counted in a file that is not the product's.
 */
import { setTimeout as breathe } from 'node:timers/promises'
import type pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { saveLimits } from '../../src/delivery/index.ts'
import { countUnaware, pauseName, resumeName } from '../../src/delivery/pause-statements.ts'
import { buildPackage } from '../support/build.ts'
import { openDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type Game, mostAtOnce, openGame } from './support/deliverers.ts'

beforeAll(buildPackage)

/** `npm run chaos` asks for more. */
const MANY = 200 * Number(process.env.AFTERCOMMIT_LOAD_FACTOR ?? 1)

it('a destination that is down is probed by one call at a time, and comes back within its limits', async () => {
  const game = await openGame()
  const down = game.flag('down')
  down.raise()
  const behaviour = { downWhile: down.path, workMs: 20 }
  const works = [{ name: 'mail', retry: { maxAttempts: 100 }, behaviour }]
  await lengthenPatience(game.sql)
  await Promise.all([1, 2].map(() => game.start({ works })))
  await game.add(MANY, { destination: 'shop.example' })

  // Down: five failures open the circuit; what had begun by then fails too, and nothing else is begun.
  await eventually(
    async () => (await circuitOf(game.sql))?.open === true && (await game.rows('token is not null')) === 0,
  )
  const wasted = game.calls('begin').length
  expect(wasted).toBeLessThanOrEqual(2 * 10)
  expect((await circuitOf(game.sql))!.reopened).toBe(0)
  expect(await attemptsIn(game)).toBe(wasted)

  // Half open and still down: one call in all, and it is open again for longer.
  await endPatience(game.sql)
  await eventually(async () => (await circuitOf(game.sql))?.reopened === 1)
  expect(game.calls('begin')).toHaveLength(wasted + 1)
  expect(await attemptsIn(game)).toBe(wasted + 1)

  // Back, with limits: so many at a time over both processes, so many a second.
  const limits = { destination: 'shop.example', concurrency: 3, rate: 120, burst: 10 }
  await saveLimits(openDatabase({ database: game.url }), [limits])
  down.lower()
  await endPatience(game.sql)
  await game.ends(MANY)
  await eventually(async () => (await game.rows()) === 0)
  const calls = game.calls().slice(2 * (wasted + 1))
  expect(calls.filter(({ what }) => what === 'begin')).toHaveLength(MANY)
  expect(mostAtOnce(calls)).toBeLessThanOrEqual(3)
  expect(mostPerSecond(calls.filter(({ what }) => what === 'begin').map(({ at }) => at))).toBeLessThanOrEqual(160)
  expect((await game.sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

it('once every worker has confirmed a pause, no call is begun anywhere, until it is resumed', async () => {
  const game = await openGame()
  const database = openDatabase({ database: game.url })
  const release = game.flag('release')
  // Most of it is still to be done when the pause comes, however late that is.
  const holds = Array.from({ length: MANY - 50 }, (_, n) => n + 51)
  await Promise.all([1, 2].map(() => game.start({ behaviour: { workMs: 20, holds, holdsUntil: release.path } })))
  await game.add(MANY)
  await eventually(() => game.calls('end').length > 20)
  const version = await pauseName(database, { kind: 'effect', name: 'mail', who: 'test', reason: null })
  await eventually(async () => (await countUnaware(database, version)) === 0)
  const begun = game.calls('begin').length
  expect(begun).toBeLessThan(MANY)
  release.raise()
  // Everything that was claimed has ended or was given back, and somebody who comes now obeys as well.
  await eventually(async () => (await game.rows('token is not null')) === 0)
  const newcomer = await game.start()
  await eventually(async () => {
    const sql = 'select from aftercommit.delivery_workers where process = $1 and seen >= $2'
    return (await game.sql.query(sql, [newcomer.process, String(version)])).rowCount === 1
  })
  expect(game.calls('begin')).toHaveLength(begun)
  await resumeName(database, 'effect', 'mail')
  await game.ends(MANY)
  expect(game.calls('begin')).toHaveLength(MANY)
})

it('100,000 deliveries for later cost an idle process at most a query a second beyond its own poll', async () => {
  const game = await openGame()
  const idle = await game.start()
  await game.add(1)
  await game.ends(1)
  // Vacuum, statistics that come late and the start itself are over at some time; what waiting costs is there all the time.
  const isCalm = async () => (await commitsPerSecond(game.sql)) <= OWN_POLL + 1
  await eventually(isCalm)
  await game.sql.query(
    `insert into aftercommit.deliveries (segment, id, lane, owner, payload, run_at)
     select 0, nextval('aftercommit.delivery_ids'), lane, 'shop', '{"n": 2}', clock_timestamp() + interval '1 hour' * random() + interval '1 hour'
       from aftercommit.delivery_lanes, generate_series(1, 100000)`,
  )
  await game.sql.query('analyze aftercommit.deliveries_0')
  await eventually(isCalm)
  // It still hears what is new.
  await game.add(1, { payload: { n: 3 } })
  await eventually(() => game.calls('end').some(({ n }) => n === 3))
  expect(idle.lines.filter((line) => line.startsWith('UNHANDLED'))).toEqual([])
})

/** What an idle process asks in a second, and this test to count it. */
const OWN_POLL = 3

async function circuitOf(sql: pg.Client): Promise<{ open: boolean; reopened: number } | undefined> {
  const { rows } = await sql.query(
    `select open_until > clock_timestamp() as open, reopened from aftercommit.destinations where not probing`,
  )
  return rows[0]
}

/** A circuit that opens stays open for as long as the test likes, and not for the ten seconds that it otherwise would. */
async function lengthenPatience(sql: pg.Client): Promise<void> {
  await sql.query(`
    create function public.lengthen() returns trigger language plpgsql as $$
    begin
      if new.open_until > clock_timestamp() then new.open_until := clock_timestamp() + interval '1 hour'; end if;
      return new;
    end $$;
    create trigger lengthen before insert or update on aftercommit.destinations
      for each row execute function public.lengthen()`)
}

/** As if the time had passed for which the destination is left alone. */
async function endPatience(sql: pg.Client): Promise<void> {
  await sql.query(
    `update aftercommit.deliveries set run_at = clock_timestamp() where token is null;
     update aftercommit.destinations set open_until = clock_timestamp() where opened_at is not null`,
  )
}

async function attemptsIn({ sql }: Game): Promise<number> {
  const { rows } = await sql.query('select sum(attempts)::int as attempts from aftercommit.deliveries')
  return rows[0].attempts
}

/** The most that fall into any one second. */
function mostPerSecond(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b)
  let from = 0
  return sorted.reduce((most, at, n) => {
    while (at - sorted[from]! > 1_000) from++
    return Math.max(most, n - from + 1)
  }, 0)
}

/** Transactions of everybody else in this database, counted by the server over some seconds. */
async function commitsPerSecond(sql: pg.Client): Promise<number> {
  const seconds = 3
  const read = async () => {
    await sql.query('select pg_stat_clear_snapshot()')
    const { rows } = await sql.query(
      'select xact_commit::int as commits from pg_stat_database where datname = current_database()',
    )
    return rows[0].commits
  }
  const before = await read()
  await breathe(seconds * 1_000)
  return ((await read()) - before) / seconds
}
