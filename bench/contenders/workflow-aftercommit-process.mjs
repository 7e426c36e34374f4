/** Two-step workflows of aftercommit. The caller hears of an end as other programs do: from the log, after its commit. */
import { randomUUID } from 'node:crypto'
import { accept, createAftercommit, defineWorkflow } from 'aftercommit'
import { payload } from '../measure.mjs'
import { readConfig, serve } from './child.mjs'
import { playInFlight } from './in-flight.mjs'

const steps = ['placed', 'charged', 'notified']
const effects = ['charge', 'notify']
const flow = defineWorkflow({
  type: 'flow',
  id: ({ id }) => id,
  initial: () => ({ step: 0 }),
  evolve: ({ step }) => ({ step: step + 1 }),
  decide: ({ step }, { id }) =>
    accept([{ type: steps[step], ...payload }], {
      effects: effects.slice(step, step + 1).map((type) => ({ type, id })),
    }),
  isTerminal: ({ step }) => step === steps.length,
})

const { database, poolSize } = readConfig()
const ac = createAftercommit({ database, poolSize })
await ac.migrate()
ac.workflows.register(flow, { effects: { charge: ({ id }) => ({ id }), notify: ({ id }) => ({ id }) } })
const ends = new Map()
ac.subscribe({ id: 'ends', on: ['flow.notified'], handle: (event) => ends.get(event.aggregateId)?.() })
await ac.start()

serve({
  play: (wanted) => playInFlight(wanted, playFlow),
  close: () => ac.stop(),
})

async function playFlow() {
  const id = randomUUID()
  const ended = new Promise((resolve) => ends.set(id, resolve))
  await ac.workflows.execute(flow, { id })
  await ended
  ends.delete(id)
}
