/** What one process finds out about a destination, and the others must know at once. */
import { expect, test } from 'vitest'
import { createDestinations } from '../../src/delivery/destinations.ts'
import { WORKERS_NUDGE } from '../../src/delivery/worker-statements.ts'
import { createTestClock } from '../../src/runtime/index.ts'
import { eventually } from '../support/eventually.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'

test('other processes are told when a circuit opens and when it closes', async () => {
  const { worker, sql } = await openDelivering()
  const one = await worker()
  const answer = { isBroken: false, calls: 0 }
  one.register(
    work(() => {
      answer.calls++
      if (answer.isBroken) throw Object.assign(new Error('503'), { transient: true })
    }),
  )
  // A worker that begins says so to the others: that is behind it now.
  await one.add(one.database, mails(1))
  await eventually(() => answer.calls)
  let told = 0
  sql.on('notification', ({ payload }) => {
    if (payload === WORKERS_NUDGE) told++
  })
  await sql.query(`listen "${one.database.schemaName.channel}"`)
  answer.isBroken = true
  await one.add(one.database, mails(8, { destination: 'https://broken.example' }))
  const isOpen = async () =>
    (await sql.query('select opened_at is not null as "isOpen" from aftercommit.destinations')).rows[0]?.isOpen
  await eventually(isOpen)
  await eventually(() => told)
  // What had begun before it opened has ended, and told nobody.
  const running = 'select from aftercommit.deliveries where token is not null'
  await eventually(async () => (await sql.query(running)).rowCount === 0)
  expect(told).toBe(1)
  answer.isBroken = false
  await sql.query('update aftercommit.destinations set open_until = now()')
  await eventually(async () => !(await isOpen()))
  await eventually(() => told === 2)
})

test('news that were asked for before a circuit opened do not close it here', async () => {
  const { worker } = await openDelivering()
  const { database } = await worker()
  const clock = createTestClock()
  const destinations = createDestinations({
    ...{ database, clock, logger: database.logger },
    lease: { isInformed: true, isPaused: () => false },
    inFlight: { isHanging: () => false },
    onPause() {},
    onTrouble() {},
  })
  const destination = 'https://broken.example'
  const well = { troubled: [], limited: [], resting: [] }
  const askedAt = clock.monotonic()
  await clock.advance(10)
  const error = Object.assign(new Error('503'), { transient: true })
  for (let n = 0; n < 5; n++) await destinations.recordFailure({ kind: 'effect', name: 'mail', destination }, error)
  destinations.learn(well, askedAt)
  expect(destinations.isResting(destination)).toBe(true)
  await clock.advance(10)
  destinations.learn(well, clock.monotonic())
  expect(destinations.isResting(destination)).toBe(false)
})
