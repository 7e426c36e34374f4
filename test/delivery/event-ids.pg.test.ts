/** Deliveries name the event that asked for them, in every segment and over every life of a row. */
import { expect, onTestFinished, test } from 'vitest'
import { accept, after, defineWorkflow } from '../../src/index.ts'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from '../workflows/support/open-workflows.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'
import { gate } from './support/open-operating.ts'

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

/** Every delivery of a type, by its kind, with the event that asked for it. */
const ASKED_BY = `
  select l.kind, d.segment > 0 as rotates, d.token is not null as claimed, e.type, e.aggregate_id as id
    from aftercommit.deliveries d
    join aftercommit.delivery_lanes l on l.lane = d.lane
    left join aftercommit.events e on e.id = d.event_id
   order by e.aggregate_id, l.kind`

const lamp = defineWorkflow({
  type: 'lamp',
  id: (input: { id: string }) => input.id,
  initial: () => ({}),
  evolve: (state, _: { type: 'bought' | 'lit' }) => state,
  decide: (_, { id }) =>
    accept([{ type: 'bought' }, { type: 'lit' }], {
      effects: [{ type: 'dim' }],
      timers: [after('1h', { id }, { key: 'off' })],
    }),
})

test('an effect and a timer name the last event of the workflow step that asked for them', async () => {
  const { open, sql } = await openWorkflows()
  const ac = open()
  ac.workflows.register(lamp, { effects: { dim: 'elsewhere' } })
  await ac.workflows.execute(lamp, { id: 'a' })
  await ac.workflows.execute(lamp, { id: 'b' })
  const rows = ['a', 'b'].flatMap((id) => [
    { kind: 'effect', rotates: true, claimed: false, type: 'lamp.lit', id },
    { kind: 'timer', rotates: false, claimed: false, type: 'lamp.lit', id },
  ])
  expect((await sql.query(ASKED_BY)).rows).toEqual(rows)
})

test('effects that a worker claims in the commit of many steps name the event of their own step', async () => {
  const { open, sql } = await openWorkflows()
  const ac = open()
  const over = gate()
  onTestFinished(over.open)
  let called = 0
  const dim = async () => {
    called++
    await over.opened
  }
  ac.workflows.register(lamp, { effects: { dim: { handle: dim, timeout: '1h' } } })
  await ac.start()
  const ids = ['a', 'b', 'c', 'd']
  await Promise.all(ids.map((id) => ac.workflows.execute(lamp, { id })))
  await eventually(() => called === ids.length)
  const { rows } = await sql.query(ASKED_BY)
  expect(rows.filter(({ kind }) => kind === 'effect').map(({ type, id }) => [type, id])).toEqual(
    ids.map((id) => ['lamp.lit', id]),
  )
})
