/** A server compiles a plan that it takes for dear, which takes longer than all the rest of a claim or a step. */
import { expect, test } from 'vitest'
import { accept, after, defineWorkflow } from '../../src/index.ts'
import { connect, hasSystemPostgres } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { plansOf } from '../support/plans.ts'
import { openWorkflows } from '../workflows/support/open-workflows.ts'
import { mails, openWorker, work } from './support/open-delivering.ts'

test.runIf(hasSystemPostgres())('a server with JIT compiles nothing for deliveries and workflows', async () => {
  const { url, open } = await openWorkflows({ major: 'system' })
  const plans = await plansOf(url)
  const sql = await connect(url)
  await deliverInOrder(url)
  await runWorkflow(open())
  const compiled = plans.filter((plan) => plan.compiled)
  expect(new Set(compiled.map(({ functions, text }) => functions.join(' in ') || text))).toEqual(new Set())
  // Each of the functions whose plans may look dear has run.
  const { rows } = await sql.query(
    `select proname as name from pg_proc
      where pronamespace = 'aftercommit'::regnamespace and array_to_string(proconfig, ' ') like '%enable_%'`,
  )
  const played = new Set(plans.flatMap(({ functions }) => functions))
  expect([...played]).toEqual(expect.arrayContaining([...rows.map(({ name }) => name), 'claim_deliveries']))
})

/** Rows that a worker claims, of which some wait for others. */
async function deliverInOrder(url: string): Promise<void> {
  const one = await openWorker(url)
  const done: number[] = []
  one.register(work(({ payload }) => void done.push((payload as { n: number }).n)))
  await one.add(one.database, mails(2, { key: 'a', ordered: true, destination: 'erp' }))
  await one.add(one.database, mails(2, { tenant: 'few' }))
  await eventually(() => done.length === 4)
  await one.isBehind()
  // Calls that wait may go to another process.
  const lane = JSON.stringify([{ kind: 'effect', name: 'mail', destination: '', tenant: 'few', priority: 0 }])
  await one.database.query(`select * from aftercommit.surplus_room('another', $1::jsonb, 50)`, [lane])
  await one.service.stop()
}

/** Of two steps: the second comes of a timer. */
async function runWorkflow(ac: ReturnType<Awaited<ReturnType<typeof openWorkflows>>['open']>): Promise<void> {
  let called = 0
  const parcel = defineWorkflow<{ steps: number }, { id: string }, { type: 'moved' }, { type: 'move' }>({
    type: 'parcel',
    id: ({ id }) => id,
    initial: () => ({ steps: 0 }),
    evolve: ({ steps }) => ({ steps: steps + 1 }),
    decide: ({ steps }, { id }) =>
      accept(
        [{ type: 'moved' }],
        steps === 0 ? { effects: [{ type: 'move' }], timers: [after('10ms', { id }, { key: 'next' })] } : {},
      ),
    isTerminal: ({ steps }) => steps === 2,
    effectsOnCompletion: 'run',
  })
  ac.workflows.register(parcel, { effects: { move: () => void called++ } })
  await ac.start()
  await ac.emitNow([
    { type: 'parcel.seen', payload: {} },
    { type: 'parcel.seen', payload: {} },
  ])
  await Promise.all(['1', '2', '3'].map((id) => ac.workflows.execute(parcel, { id })))
  await eventually(async () => (await ac.workflows.query(parcel, '3'))?.state.steps === 2)
  await eventually(() => called === 3)
  await ac.workflows.history(parcel, '3')
}
