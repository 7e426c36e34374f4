/** The database fails between two statements of ours: whatever was claimed is settled in the end, by a process that goes on. */
import { describe, expect, test } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { type Loss, lossyDatabase } from './support/lossy-database.ts'
import { mails, type OpenDelivering, openDelivering, work } from './support/open-delivering.ts'

async function openLossy(loss: Loss) {
  const opened = await openDelivering()
  const database = lossyDatabase(opened.url, loss)
  return { ...opened, database, one: await opened.worker({ database }) }
}

const isEmpty = async ({ sql }: Pick<OpenDelivering, 'sql'>) =>
  (await sql.query('select from aftercommit.deliveries')).rowCount === 0

describe.each(['the answer', 'the question'] as const)('a connection that is lost before %s', (after) => {
  test('of a claim leaves nothing claimed', async () => {
    const game = await openLossy({ of: 'claim_deliveries', times: 2, after })
    const calls: number[] = []
    await game.one.add(game.one.database, mails(20))
    game.one.register(work(({ attempt }) => void calls.push(attempt)))
    await eventually(() => isEmpty(game))
    expect(game.database.lost).toBe(2)
    // What was never begun costs no attempt.
    expect(calls).toEqual(Array(20).fill(1))
  })

  test('of a look at lanes leaves nothing claimed', async () => {
    const game = await openLossy({ of: 'from "aftercommit".delivery_lanes where lane', times: 1, after })
    const calls: unknown[] = []
    // Another process made the lane, so this one has to ask.
    const other = await game.worker()
    await other.add(other.database, mails(20))
    game.one.register(work(({ payload }) => void calls.push(payload)))
    await eventually(() => isEmpty(game))
    expect(game.database.lost).toBe(1)
    expect(calls).toHaveLength(20)
  })

  test('of a completion calls nobody again', async () => {
    const game = await openLossy({ of: 'delete from', times: 1, after })
    const calls: unknown[] = []
    game.one.register(work(({ payload }) => void calls.push(payload)))
    await game.one.add(game.one.database, mails(20))
    await eventually(() => isEmpty(game))
    expect(game.database.lost).toBe(1)
    expect(calls).toHaveLength(20)
  })

  test('of a failed attempt makes one more attempt, not two', async () => {
    const game = await openLossy({ of: 'jsonb_to_recordset', times: 1, after })
    const attempts: number[] = []
    game.one.register(
      work(async ({ attempt }) => {
        attempts.push(attempt)
        if (attempt === 1) throw new Error('once')
      }),
    )
    await game.one.add(game.one.database, mails(1))
    await eventually(() => isEmpty(game))
    expect(game.database.lost).toBe(1)
    expect(attempts).toEqual([1, 2])
  })

  test('of the word about a destination loses no delivery', async () => {
    const game = await openLossy({ of: 'insert into "aftercommit".destinations', times: 1, after })
    const attempts: number[] = []
    game.one.register(
      work(async ({ attempt }) => {
        attempts.push(attempt)
        if (attempt === 1) throw Object.assign(new Error('busy'), { transient: true })
      }),
    )
    await game.one.add(game.one.database, mails(1, { destination: 'shop.example' }))
    await eventually(() => isEmpty(game))
    expect(game.database.lost).toBe(1)
    expect(attempts).toEqual([1, 2])
  })

  test('of a burial makes one dead letter all the same', async () => {
    const game = await openLossy({ of: 'transaction', times: 1, after })
    const attempts: number[] = []
    game.one.register(
      work(async ({ attempt }) => {
        attempts.push(attempt)
        throw new GiveUp('closed for good')
      }),
    )
    await game.one.add(game.one.database, mails(1))
    await eventually(() => isEmpty(game))
    expect(game.database.lost).toBe(1)
    const { rows } = await game.sql.query('select status, attempts from aftercommit.letters')
    expect(rows).toEqual([{ status: 'dead', attempts: 1 }])
    expect(attempts).toEqual([1])
  })
})

test('a dead letter that its owner cannot write down is tried again later and never left claimed', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  one.register(
    work(() => Promise.reject(new GiveUp('closed')), {
      onDead: () => Promise.reject(new TypeError('a mistake of the owner')),
    }),
  )
  await one.add(one.database, mails(1))
  const row = await eventually(
    async () => (await sql.query('select * from aftercommit.deliveries where token is null and attempts = 1')).rows[0],
  )
  expect(row.run_at.getTime()).toBeGreaterThan(row.created_at.getTime() + 10_000)
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})

test('errors that cannot be stored as they are, and many long ones at once, are written down all the same', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker({ concurrency: 1_000 })
  const rubbish = new Error(`said \u0000 and \ud800 ${'x'.repeat(100_000)}`)
  one.register(work(({ attempt }) => (attempt === 1 ? Promise.reject(rubbish) : undefined)))
  one.register(work(() => Promise.reject(rubbish), { name: 'fax' }))
  await one.add(one.database, [...mails(1_000), ...mails(1, { name: 'fax' })])
  await eventually(() => isEmpty({ sql }))
  const { rows } = await sql.query(`select error ->> 'message' as message from aftercommit.letters`)
  expect(rows).toEqual([{ message: expect.stringMatching(/^said \ufffd and \ufffd x+$/) }])
})
