import { expect, test } from 'vitest'
import { accept, after, defineWorkflow, type EffectContext } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from './support/open-workflows.ts'

interface Input {
  readonly id: string
  readonly say: string
}

/** Asks for one effect and hears its answer. */
function asking(type: string, effect: string, orderedEffects = false) {
  return defineWorkflow({
    type,
    orderedEffects,
    id: ({ id }: Input) => id,
    initial: () => '',
    evolve: (_, { said }: { type: 'said'; said: string }) => said,
    decide: (_, { say }) => accept([{ type: 'said', said: say }], { effects: say === 'ask' ? [{ type: effect }] : [] }),
  })
}

test('effects of workflows whose types and effects join to the same text are done by their own handlers', async () => {
  const { open } = await openWorkflows()
  const ac = open()
  const asked: [type: string, effect: string, ordered?: boolean][] = [
    ['order', 'payment.charge'],
    ['order.payment', 'charge'],
    ['order.payment.charge', 'x', true],
    ['order.payment.charge.effects', 'x'],
    ['order.payment.charge.effects.x', 'y', true],
  ]
  const all = asked.map(([type, effect, ordered]) => {
    const workflow = asking(type, effect, ordered)
    ac.workflows.register(workflow, {
      effects: { [effect]: (_: unknown, { workflow: { id } }: EffectContext) => ({ id, say: `done by ${type}` }) },
    })
    return workflow
  })
  await ac.start()
  for (const { type } of all) await ac.workflows.executeDynamic(type, { id: type, say: 'ask' })
  for (const workflow of all) {
    await eventually(
      async () => (await ac.workflows.query(workflow, workflow.type))?.state === `done by ${workflow.type}`,
    )
  }
  // No answer has begun an instance of another workflow.
  expect((await ac.workflows.list()).items.map(({ type, id }) => [type, id]).sort()).toEqual(
    all.map(({ type }) => [type, type]).sort(),
  )
})

test('an input and a timer that wait for the same paused instance both wait, whatever the id of the input', async () => {
  const { open, sql } = await openWorkflows()
  const ac = open()
  const workflow = defineWorkflow({
    type: 'alarm',
    id: ({ id }: Input) => id,
    on: { 'alarm.asked': (event) => ({ id: 'a', say: `event ${event.id}` }) },
    initial: (): readonly string[] => [],
    evolve: (state, { said }: { type: 'said'; said: string }) => [...state, said],
    decide: (_, { id, say }) =>
      accept([{ type: 'said', said: say }], { timers: say === 'arm' ? [after('1h', { id, say: 'rang' })] : [] }),
  })
  ac.workflows.register(workflow)
  await ac.workflows.execute(workflow, { id: 'a', say: 'arm' })
  const [timer] = await ac.workflows.timers()
  await ac.workflows.pause({ type: 'alarm', id: 'a' })
  // Paused under the timer's feet: it fires, finds its instance paused and waits anew under a key of its own.
  await sql.query(`update aftercommit.deliveries set run_at = clock_timestamp()`)
  await ac.start()
  await eventually(async () => (await ac.workflows.timers())[0]!.delivery !== timer!.delivery)
  await ac.transaction((tx) => tx.emit('alarm.asked', { id: String(timer!.delivery), payload: {} }))
  await eventually(async () => (await ac.workflows.timers()).length === 2)
  await ac.workflows.resume({ type: 'alarm', id: 'a' })
  await eventually(async () => (await ac.workflows.query(workflow, 'a'))!.state.includes(`event ${timer!.delivery}`))
})
