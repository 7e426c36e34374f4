/** What an event leaves is written with the checkpoint, once, whatever happens to the answers. */
import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/postgres/index.ts'
import { createDatabase } from '../../src/postgres/index.ts'
import { Leftovers, type LeftRow } from '../../src/subscriptions/index.ts'
import { releaseLease, takeLeases } from '../../src/subscriptions/lease-statements.ts'
import { Progress } from '../../src/subscriptions/progress.ts'
import { Saver } from '../../src/subscriptions/saver.ts'
import { registerSubscription } from '../../src/subscriptions/statements.ts'
import { type Loss, lossyDatabase } from '../delivery/support/lossy-database.ts'
import { eventAt } from '../delivery/support/reacting.ts'
import { connect, testDatabase } from '../support/database.ts'
import { collectingLogger } from '../support/logger.ts'

const ID = 'reader'

async function open(toDatabase: (url: string) => Database = (url) => createDatabase({ database: url })) {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connect(url)
  const database = toDatabase(url)
  const { generation } = await registerSubscription(database, {
    id: ID,
    kind: 'observers',
    definition: '{}',
    position: 0n,
  })
  const take = async (process: string) =>
    (await takeLeases(database, process, [{ id: ID, generation }], { force: true, former: [process] }))[0]!
  const { logger, lines } = collectingLogger()
  const openSaver = async (process = 'me') => {
    const lease = await take(process)
    const progress = new Progress(lease.position, lease.done)
    const lost: boolean[] = []
    const saver = new Saver({
      db: database.control,
      lease,
      progress,
      logger,
      onLost: () => void lost.push(true),
      onSaved() {},
    })
    /** Takes an event, lets it leave something and writes it, repeating the write as the runner does. */
    const leave = async (position: bigint, words: Partial<Pick<Leftovers, 'rows' | 'runs' | 'alerts'>>) => {
      progress.take(position)
      saver.keep(eventAt(position), Object.assign(new Leftovers(), words))
    }
    const write = async () => {
      for (;;) {
        try {
          await saver.settle()
          return await saver.save()
        } catch (error) {
          if ((error as { code?: string }).code !== 'ECONNRESET') throw error
        }
      }
    }
    return { lease, saver, progress, lost, leave, write }
  }
  const rows = async (text: string) => (await sql.query(text)).rows
  return { sql, rows, lines, openSaver, database }
}

function row(n: number, words: Partial<LeftRow> = {}): LeftRow {
  return {
    lane: { kind: 'action', name: 'o/a', destination: '', tenant: '', priority: 0 },
    owner: 'o/a',
    key: null,
    eventId: `evt-${n}`,
    payload: `{"n":${n}}`,
    delayMs: 0,
    ...words,
  }
}

const RUN = {
  event_id: 'evt-1',
  position: '1',
  observer: 'o',
  event_type: 'order.paid',
  status: 'failure',
  duration_ms: 1,
  attempt: 1,
  actions: [],
}

const LOSSES: readonly Omit<Loss, 'of'>[] = [
  { times: 1, after: 'the answer' },
  { times: 3, after: 'the answer' },
  { times: 3, after: 'the question' },
]

describe.each(LOSSES)('after $times lost writes, each before $after', (loss) => {
  test('rows, an alert, a run record and the checkpoint are there once', async () => {
    const { rows, openSaver } = await open((url) => lossyDatabase(url, { of: 'save_checkpoint', ...loss }))
    const { leave, write, progress } = await openSaver()
    const alert = { about: 'o', text: 'failed', channels: ['(alerts)/slack'], everySeconds: 300 }
    await leave(1n, { rows: [row(1)], runs: [RUN], alerts: [alert] })
    await write()
    expect(progress.held).toBe(0)
    expect(await rows(`select payload from aftercommit.deliveries where owner = 'o/a'`)).toEqual([
      { payload: { n: 1 } },
    ])
    expect(
      await rows(`select (payload ->> 'count')::int as count from aftercommit.deliveries where owner <> 'o/a'`),
    ).toEqual([{ count: 1 }])
    expect(await rows('select event_id from aftercommit.runs')).toEqual([{ event_id: 'evt-1' }])
    expect(await rows('select position::int from aftercommit.subscription_partitions')).toEqual([{ position: 1 }])
  })

  test('a plain checkpoint is repeated without losing the lease, and the next one moves on', async () => {
    const { rows, openSaver } = await open((url) => lossyDatabase(url, { of: 'save = coalesce', ...loss }))
    const { write, progress, lost } = await openSaver()
    progress.pass(5n)
    await write()
    progress.pass(6n)
    await write()
    expect(lost).toEqual([])
    expect(await rows('select position::int from aftercommit.subscription_partitions')).toEqual([{ position: 6 }])
  })
})

test('an owner that lost its lease writes nothing, neither rows nor the checkpoint', async () => {
  const { rows, openSaver } = await open()
  const before = await openSaver()
  const after = await openSaver()
  await before.leave(1n, { rows: [row(1)] })
  await before.write()
  expect(before.lost).toEqual([true])
  expect(await rows('select from aftercommit.deliveries')).toEqual([])
  after.progress.pass(9n)
  await after.write()
  expect(after.lost).toEqual([])
  expect(await rows('select position::int from aftercommit.subscription_partitions')).toEqual([{ position: 9 }])
})

test('rows of later events are written behind those of earlier ones, in the order in which the events ended', async () => {
  const { rows, openSaver } = await open()
  const { leave, write } = await openSaver()
  for (const n of [2, 1, 3]) await leave(BigInt(n), { rows: [row(n, { key: 'k' })] })
  await write()
  const ids = await rows(`select (payload ->> 'n')::int as n, ordered from aftercommit.deliveries order by id`)
  expect(ids).toEqual([2, 1, 3].map((n) => ({ n, ordered: true })))
})

test('a refused run record costs the record, and neither the row nor the checkpoint', async () => {
  const { rows, lines, openSaver } = await open()
  const { leave, write } = await openSaver()
  await leave(1n, { rows: [row(1)], runs: [{ ...RUN, event_id: null }] })
  await write()
  expect(await rows('select from aftercommit.runs')).toEqual([])
  expect(await rows('select payload from aftercommit.deliveries')).toEqual([{ payload: { n: 1 } }])
  expect(lines.some((line) => line.includes('run records were refused'))).toBe(true)
})

test('one event whose row the database refuses becomes a dead letter without payload, and the others keep their rows', async () => {
  const { sql, rows, openSaver } = await open()
  await sql.query(`alter table aftercommit.deliveries add check (payload ->> 'n' <> '7')`)
  const { leave, write, progress } = await openSaver()
  for (let n = 1; n <= 20; n++) await leave(BigInt(n), { rows: [row(n)] })
  await write()
  expect(progress.held).toBe(0)
  expect(await rows('select count(*)::int from aftercommit.deliveries')).toEqual([{ count: 19 }])
  expect(
    await rows(`select owner, event_id, event -> 'payload' as payload, delivery from aftercommit.letters`),
  ).toEqual([{ owner: 'o/a', event_id: 'evt-7', payload: null, delivery: null }])
  expect(await rows('select position::int from aftercommit.subscription_partitions')).toEqual([{ position: 20 }])
})

test('an event whose dead letter is refused too is written again later, and not in a loop', async () => {
  const { sql, rows, openSaver } = await open()
  await sql.query(`alter table aftercommit.deliveries add constraint no check (payload ->> 'n' <> '1')`)
  await sql.query(`alter table aftercommit.letters add constraint no check (false) not valid`)
  const { leave, write } = await openSaver()
  await leave(1n, { rows: [row(1)] })
  await expect(write()).rejects.toMatchObject({ code: '23514' })
  await sql.query(`alter table aftercommit.letters drop constraint no`)
  await write()
  expect(await rows('select event_id from aftercommit.letters')).toEqual([{ event_id: 'evt-1' }])
})

test('more than one write holds is written by several, each complete', async () => {
  const { rows, openSaver } = await open()
  const { leave, write } = await openSaver()
  for (let n = 1; n <= 1_200; n++) await leave(BigInt(n), { rows: [row(n)] })
  await write()
  expect(await rows('select count(*)::int from aftercommit.deliveries')).toEqual([{ count: 1_200 }])
  expect(await rows('select save::int from aftercommit.subscription_partitions')).toEqual([{ save: 3 }])
})

test('an action counts as settled only from the write that holds its row, not from an earlier one of the same save', async () => {
  const { sql, rows, openSaver } = await open()
  // The second write fails: its part never arrives before the process ends.
  await sql.query(`alter table aftercommit.subscription_partitions add column allowed bigint default 1`)
  await sql.query(`create function aftercommit.refuse() returns trigger language plpgsql as
                   $$ begin if new.save > new.allowed then raise exception 'away' using errcode = '57P03'; end if; return new; end $$`)
  await sql.query(`create trigger refuse before update of save on aftercommit.subscription_partitions
                   for each row execute function aftercommit.refuse()`)
  const { saver, progress, leave } = await openSaver()
  progress.take(1n)
  for (let n = 2; n <= 501; n++) await leave(BigInt(n), { rows: [row(n)] })
  saver.keepPart(eventAt(1n), Object.assign(new Leftovers(), { rows: [row(1)], owners: ['o/a'] }))
  await expect(saver.save()).rejects.toMatchObject({ code: '57P03' })
  expect(await rows('select save::int, settled from aftercommit.subscription_partitions')).toEqual([
    { save: 1, settled: {} },
  ])
  await sql.query('update aftercommit.subscription_partitions set allowed = 9')
  await saver.settle()
  expect(await rows('select save::int, settled from aftercommit.subscription_partitions')).toEqual([
    { save: 2, settled: { 1: ['o/a'] } },
  ])
})

test('a settled action stays settled while a refused write is halved and its event waits for a later half', async () => {
  const { sql, rows, openSaver } = await open()
  await sql.query(`alter table aftercommit.deliveries add check (payload ->> 'n' <> '3')`)
  const { saver, progress, leave } = await openSaver()
  progress.take(2n)
  saver.keepPart(eventAt(2n), Object.assign(new Leftovers(), { rows: [row(2)], owners: ['o/a'] }))
  await saver.save()
  await sql.query(`create table settled_by_save (save bigint, position bigint, settled jsonb)`)
  await sql.query(`create function aftercommit.note() returns trigger language plpgsql as
                   $$ begin insert into public.settled_by_save values (new.save, new.position, new.settled); return null; end $$`)
  await sql.query(`create trigger note after update of save on aftercommit.subscription_partitions
                   for each row execute function aftercommit.note()`)
  await leave(1n, { rows: [row(1)] })
  saver.keep(eventAt(2n), Object.assign(new Leftovers(), { rows: [row(4)] }))
  await leave(3n, { rows: [row(3)] })
  await saver.save()
  const saves = await rows('select position::int, settled from settled_by_save order by save')
  expect(saves[0]).toEqual({ position: 1, settled: { 2: ['o/a'] } })
  expect(await rows('select position::int, settled from aftercommit.subscription_partitions')).toEqual([
    { position: 3, settled: {} },
  ])
})

test('an owner that is gone counts as a death, and one that takes its lease again or gave it back does not', async () => {
  const { rows, openSaver, database } = await open()
  const deaths = async () => (await rows('select deaths from aftercommit.subscription_partitions'))[0]!.deaths
  await openSaver('first')
  const { lease } = await openSaver('first')
  expect(await deaths()).toBe(0)
  await releaseLease(database, lease, { clean: false, channel: null })
  await openSaver('second')
  expect(await deaths()).toBe(0)
  const { lease: third, write, progress } = await openSaver('third')
  expect(await deaths()).toBe(1)
  // The event that a run failed at is a suspect like one that ended its process.
  await releaseLease(database, third, { clean: false, failed: true, channel: null })
  expect(await deaths()).toBe(2)
  progress.pass(1n)
  await write()
  expect(await deaths()).toBe(0)
})

test('the dead letter of a redriven event is settled by the write of the rows that the event leaves', async () => {
  const { sql, rows, openSaver } = await open((url) =>
    lossyDatabase(url, { of: 'save_checkpoint', times: 1, after: 'the answer' }),
  )
  const { rows: letters } = await sql.query(
    `insert into aftercommit.letters (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at,
                                      last_attempt_at, parks, status)
     values ('subscription', $1, 'k', 'evt-1', 1, '{}', '{}', 1, now(), now(), false, 'redriving') returning id::text`,
    [ID],
  )
  await sql.query(`insert into aftercommit.parked (owner, position, key, event) values ($1, 2, 'k', '{}')`, [ID])
  const { saver, write } = await openSaver()
  const redriven = { letter: BigInt(letters[0].id) }
  saver.keep(eventAt(1n), Object.assign(new Leftovers(), { rows: [row(1)], redriven }))
  saver.keep(eventAt(2n), Object.assign(new Leftovers(), { rows: [row(2)], redriven: { position: 2n } }))
  await write()
  expect(await rows('select status from aftercommit.letters')).toEqual([{ status: 'resolved' }])
  expect(await rows('select payload from aftercommit.deliveries order by id')).toEqual([
    { payload: { n: 1 } },
    { payload: { n: 2 } },
  ])
  expect(await rows('select from aftercommit.parked')).toEqual([])
})
