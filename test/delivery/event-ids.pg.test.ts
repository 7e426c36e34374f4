/** Deliveries name the event that asked for them, in every segment and over every life of a row. */
import { expect, test } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('a delivery keeps the id of its event when it is retried, dies and is redriven', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const idOf = async (where: string) => {
    const { rows } = await sql.query(`select event_id from aftercommit.deliveries where ${where}`)
    return rows[0]?.event_id as string | undefined
  }
  await one.add(one.database, [{ ...mails(1)[0]!, eventId: 'evt-7' }])
  expect(await idOf('segment > 0')).toBe('evt-7')

  let failure: Error = new Error('busy')
  one.register(
    work(() => {
      throw failure
    }),
  )
  await eventually(async () => (await idOf('segment = 0')) === 'evt-7')

  failure = new GiveUp('closed')
  await sql.query(`update aftercommit.deliveries set run_at = now()`)
  one.wake()
  await eventually(async () => (await sql.query('select from aftercommit.letters')).rowCount === 1)
  await sql.query(`update aftercommit.letters set status = 'redriving'`)
  failure = new Error('busy')
  one.nudged()
  await eventually(async () => (await idOf('letter is not null')) === 'evt-7')
})

test('an action that is tried again names the event that its observer matched', async () => {
  const { ac, sql, emit } = await openSubscriptions()
  ac.observers.action('note', () => {
    throw new Error('no paper')
  })
  const retry = { maxAttempts: 2, initialDelay: '1h', maxDelay: '1h' }
  const actions = [{ type: 'custom', name: 'note', handler: 'note' }]
  await ac.observers.add({ name: 'slow', on: 'lamp.lit', retry, actions })
  await ac.start()
  await emit('a')
  await eventually(async () => {
    const { rows } = await sql.query('select event_id from aftercommit.deliveries')
    return rows.length === 1 && rows[0].event_id === 'a'
  })
})
