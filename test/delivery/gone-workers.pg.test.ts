/** Workers that are gone: what they left is found, and looking for it costs the others little. */
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { beginLeaseByHand, claimByHand as claim, enlistByHand, pagesOfClaim } from './support/by-hand.ts'
import { openClaimer } from './support/open-claimer.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

const DEAD = `insert into aftercommit.delivery_workers (worker, process) values ('dead', 'p')`

describe.each([18, 14] as const)('on Postgres %i', (major) => {
  test('looking for what a dead worker left passes over 100,000 rows that are due later', async () => {
    const { worker, sql } = await openDelivering({ major })
    const one = await worker()
    await one.add(one.database, [...mails(50), ...mails(1, { destination: 'paused', payload: { n: 51 } })])
    // Nobody can take it, so it keeps its worker from being forgotten.
    await sql.query(`insert into aftercommit.destinations (destination, paused) values ('paused', true)`)
    await sql.query(DEAD)
    await sql.query(
      `update aftercommit.deliveries d set token = 5, worker = 'dead', attempts = 1
         from aftercommit.delivery_lanes l where l.lane = d.lane and l.destination = 'paused'`,
    )
    const before = await pagesOfClaim(sql)
    await sql.query(
      `insert into aftercommit.deliveries (segment, id, lane, owner, payload, run_at)
       select 0, nextval('aftercommit.delivery_ids'), lane, 'shop', '{}', now() + interval '1 day'
         from aftercommit.delivery_lanes, generate_series(1, 100000) where destination = ''`,
    )
    await sql.query('vacuum analyze aftercommit.deliveries')
    expect(await pagesOfClaim(sql)).toBeLessThan(before + 100)
    await sql.query('delete from aftercommit.destinations')
    expect(await claim(sql, 1)).toEqual([51])
  })

  test('a worker that begins while another looks for the dead is not taken for one of them', async () => {
    const { url, worker, sql } = await openDelivering({ major })
    const one = await worker()
    await one.add(one.database, mails(1))
    await enlistByHand(sql)
    await sql.query(DEAD)
    // The claim stands still in its middle, where it writes down what it works on.
    const holder = await connect(url)
    await holder.query('begin')
    await holder.query(`update aftercommit.delivery_workers set started_at = started_at where worker = 'by hand'`)
    const claimer = await connect(url)
    const claimed = claim(claimer, 10, { running: { somewhere: 1 } })
    await eventually(async () => {
      const { rows } = await sql.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    await beginLeaseByHand(sql, 'new')
    await sql.query(`update aftercommit.deliveries set token = 9, worker = 'new', attempts = 1`)
    await holder.query('commit')
    expect(await claimed).toEqual([])
    expect((await sql.query('select worker from aftercommit.deliveries')).rows).toEqual([{ worker: 'new' }])
  })
})

test('after a look that found nothing left by the dead, the next claims do not look again until a while later', async () => {
  const { worker, sql } = await openDelivering()
  const { database } = await worker()
  await enlistByHand(sql)
  await sql.query(DEAD)
  // What was asked for, written down by the function that is asked.
  await sql.query(`
    create table asked (n serial, suspects boolean);
    alter function aftercommit.claim_deliveries rename to claim_asked;
    create function aftercommit.claim_deliveries(
      text, bigint, jsonb, integer, p_suspects boolean, jsonb, integer, integer, jsonb, jsonb, integer)
    returns table (segment smallint, id bigint, lane integer, owner text, key text, payload text, attempts integer,
                   created_ms double precision, token bigint, suspect boolean, letter bigint)
    language plpgsql as $$
    begin
      insert into asked (suspects) values (p_suspects);
      return query select * from aftercommit.claim_asked($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);
    end
    $$`)
  const { claimer, lease, pass } = openClaimer(database)
  const ask = async (times: number) => {
    await sql.query('truncate asked')
    for (let n = 0; n < times; n++) await claimer.claim('by hand', 0)
    const { rows } = await sql.query('select suspects from asked order by n')
    return rows.map(({ suspects }) => suspects)
  }
  expect(await ask(2)).toEqual([false, false])
  lease.hasGone = true
  expect(await ask(4)).toEqual([true, false, false, false])
  pass(3_600_000)
  expect(await ask(3)).toEqual([true, false, false])
})

test('a dead worker that cannot be forgotten yet is not looked at whenever a worker asks for news', async () => {
  const { worker, sql } = await openDelivering()
  await sql.query(`
    create table tries (n serial);
    create function tried() returns trigger language plpgsql as $$ begin insert into tries default values; return null; end $$;
    create trigger tried before delete on aftercommit.delivery_workers for each statement execute function tried()`)
  let now = 0
  const one = await worker({ clock: { ...systemClock, monotonic: () => now } })
  one.register(work(() => {}))
  await one.add(one.database, mails(1, { name: 'nobody can' }))
  // It has asked for news when it has seen the version that was set before.
  const informed = async () => {
    await sql.query('update aftercommit.delivery_state set version = version + 1')
    one.nudged()
    await eventually(
      async () =>
        (
          await sql.query(
            `select from aftercommit.delivery_workers, aftercommit.delivery_state where process = $1 and seen = version`,
            [one.process],
          )
        ).rowCount === 1,
    )
  }
  // A worker that begins tries to forget the dead as well: that is behind it now. And the dead one comes with what it left.
  await informed()
  await sql.query(`begin; ${DEAD};
    update aftercommit.deliveries set token = 5, worker = 'dead', attempts = 1; commit`)
  const tries = async () => (await sql.query('select from tries')).rowCount
  await eventually(tries)
  for (let n = 0; n < 5; n++) await informed()
  expect(await tries()).toBe(1)
  now += 30_000
  await eventually(async () => {
    one.nudged()
    return (await tries()) === 2
  })
  await sql.query('delete from aftercommit.deliveries')
  await eventually(async () => {
    now += 30_000
    one.nudged()
    return (await sql.query(`select from aftercommit.delivery_workers`)).rowCount === 1
  })
})
