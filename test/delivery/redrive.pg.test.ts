import { expect, test } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('marked letters whose unique keys are taken keep no other waiting, and are done when their keys are free', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const done: string[] = []
  let broken = true
  one.register(
    work(({ payload }) => {
      if (broken) throw new GiveUp('closed')
      done.push(payload as string)
    }),
  )
  const withStatus = async (status: string) =>
    (await sql.query('select from aftercommit.letters where status = $1', [status])).rowCount
  // More than are made work at a time.
  const taken = Array.from({ length: 120 }, (_, n) => ({
    ...mails(1)[0]!,
    payload: `taken ${n}`,
    uniqueKey: `key ${n}`,
  }))
  await one.add(one.database, taken)
  await eventually(async () => (await withStatus('dead')) === 120)
  await one.add(one.database, mails(1, { payload: 'free' }))
  await eventually(async () => (await withStatus('dead')) === 121)
  broken = false
  await one.add(
    one.database,
    taken.map((delivery) => ({ ...delivery, payload: 'tomorrow', delayMs: 86_400_000 })),
  )

  // They are made work in the order of the log: the one that can be comes last.
  await sql.query(`update aftercommit.letters set status = 'redriving', position = id`)
  one.nudged()
  await eventually(async () => (await withStatus('resolved')) === 1)
  expect(done).toEqual(['free'])
  expect(await withStatus('redriving')).toBe(120)

  await sql.query(`delete from aftercommit.deliveries where payload = '"tomorrow"'`)
  one.nudged()
  await eventually(async () => (await withStatus('resolved')) === 121)
  expect(done.toSorted()).toEqual(['free', ...taken.map(({ payload }) => payload)].toSorted())
})
