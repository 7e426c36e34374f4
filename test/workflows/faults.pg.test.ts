/** Errors with a SQLSTATE in effects and in `decide`: they count as attempts, and nothing is called for ever. */
import { expect, it } from 'vitest'
import { accept, after, defineWorkflow } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { fulfilment } from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

const QUICKLY = { maxAttempts: 3, initialDelay: '10ms', maxDelay: '20ms' } as const

function sqlError(code: string): Error {
  return Object.assign(new Error(`refused with ${code}`), { code })
}

it('an effect whose own statement always times out is a dead letter after its attempts', async () => {
  const { open, sql } = await openWorkflows()
  const ac = open()
  const attempts: number[] = []
  ac.workflows.register(fulfilment, {
    effects: {
      charge: {
        retry: QUICKLY,
        async handle(_, { attempt }) {
          attempts.push(attempt)
          await sql.query("set statement_timeout = '20ms'")
          await sql.query('select pg_sleep(10)')
        },
      },
      notify: 'elsewhere',
    },
  })
  await ac.start()
  await ac.workflows.execute(fulfilment, { type: 'place', orderId: '42', total: 90 })
  const [letter] = await eventually(async () => {
    const letters = await ac.deadLetters.list({ kind: 'effect' })
    return letters.length > 0 && letters
  })
  expect(attempts).toEqual([1, 2, 3])
  expect(letter).toMatchObject({ attempts: 3, error: { code: '57014' } })
})

it('an effect that throws 57P01 while other effects end is a dead letter', async () => {
  const { open } = await openWorkflows()
  const ac = open()
  ac.workflows.register(fulfilment, {
    effects: {
      charge: {
        retry: QUICKLY,
        handle({ orderId }) {
          if (orderId === 'poison') throw sqlError('57P01')
        },
      },
      notify: 'elsewhere',
    },
  })
  await ac.start()
  await ac.workflows.execute(fulfilment, { type: 'place', orderId: 'poison', total: 90 })
  let others = 0
  await eventually(async () => {
    await ac.workflows.execute(fulfilment, { type: 'place', orderId: `other-${others++}`, total: 90 })
    return (await ac.deadLetters.count({ kind: 'effect' })) === 1
  })
  expect(await ac.deadLetters.list()).toMatchObject([{ attempts: 3, error: { code: '57P01' } }])
})

it('an effect that conflicts again and again is repeated at growing distances, not ten times a second', async () => {
  const { open } = await openWorkflows()
  const ac = open()
  const times: number[] = []
  ac.workflows.register(fulfilment, {
    effects: {
      charge: {
        retry: QUICKLY,
        handle() {
          times.push(performance.now())
          throw sqlError('40001')
        },
      },
      notify: 'elsewhere',
    },
  })
  await ac.start()
  await ac.workflows.execute(fulfilment, { type: 'place', orderId: '42', total: 90 })
  await eventually(() => times.length === 5)
  // 100, 200, 400 and 800 ms, each shorter by a quarter at most.
  const waits = times.slice(1).map((time, n) => time - times[n]!)
  for (const [n, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual(0.75 * 100 * 2 ** n)
})

it('a timer whose `decide` throws an error with a SQLSTATE counts an attempt each time', async () => {
  const { open } = await openWorkflows()
  const ac = open()
  let calls = 0
  const workflow = defineWorkflow({
    type: 'clock',
    id: (input: { id: string; rings?: boolean }) => input.id,
    initial: () => ({}),
    evolve: (state, _: { type: 'set' }) => state,
    decide(_, { id, rings }) {
      if (!rings) return accept([{ type: 'set' }], { timers: [after('1ms', { id, rings: true })] })
      calls++
      throw sqlError('55P03')
    },
  })
  ac.workflows.register(workflow)
  await ac.start()
  await ac.workflows.execute(workflow, { id: 'a' })
  const [waiting] = await eventually(async () => {
    const rows = await ac.deliveries.list({ kind: 'timer' })
    return (rows[0]?.attempts ?? 0) >= 2 && rows
  })
  expect(waiting).toMatchObject({ error: { code: '55P03' } })
  expect(calls).toBeLessThanOrEqual(3)
})
