/** The programs of docs/guides/workflow-changes.md, run as they stand there. */
import { accept, type createAftercommit, defineWorkflow, reject } from 'aftercommit'
import { expect, it } from 'vitest'
import { findBlocks, readPage } from '../markdown.ts'
import { rulesFile } from '../observers/support/search-rules.ts'
import { eventually } from '../support/eventually.ts'
import { fulfilment } from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

// #region refund
type State = { status: 'new' | 'asked' | 'paid' }
type Input = { type: 'ask'; id: string; cents: number; account: string } | { type: 'paid'; id: string }
type Event = { type: 'asked'; cents: number } | { type: 'paid' }
type Effect = { type: 'transfer'; id: string; cents: number }

const refund = defineWorkflow<State, Input, Event, Effect, string>({
  type: 'refund',
  id: (input) => input.id,
  initial: () => ({ status: 'new' }),
  evolve: (_, event) => ({ status: event.type }),
  isTerminal: ({ status }) => status === 'paid',
  decide({ status }, input) {
    if (input.type === 'paid') return status === 'asked' ? accept([{ type: 'paid' }]) : reject(`it is ${status}`)
    if (status !== 'new') return reject(`it is ${status}`)
    const { id, cents } = input
    return accept([{ type: 'asked', cents }], { effects: [{ type: 'transfer', id, cents }] })
  },
  observe: {
    retention: '14d',
    redact: (input) => (input.type === 'ask' ? { ...input, account: 'hidden' } : input),
  },
  destination: () => 'bank',
})
// #endregion

it('observations of the guide are redacted, and its effects go to a destination with limits', async () => {
  const { open, sql } = await openWorkflows()
  const ac = open()
  const toml = findBlocks(readPage('docs/guides/workflow-changes.md')).find(({ language }) => language === 'toml')!
  await ac.observers.loadFile(rulesFile(toml.code))
  const seen: string[] = []
  ac.workflows.register(refund, {
    effects: {
      transfer({ id }, { idempotencyKey }) {
        seen.push(idempotencyKey)
        return { type: 'paid', id }
      },
    },
  })
  await ac.start()
  await ac.workflows.execute(refund, { type: 'ask', id: '7', cents: 500, account: 'DE02 1203' })
  await eventually(async () => (await ac.workflows.query(refund, '7'))?.completed)
  expect(seen).toEqual(['refund/7:1.0'])
  const { rows } = await sql.query('select input, outcome from aftercommit.input_observations order by number')
  expect(rows).toEqual([
    { input: { type: 'ask', id: '7', cents: 500, account: 'hidden' }, outcome: 'accepted' },
    { input: { type: 'paid', id: '7' }, outcome: 'accepted' },
  ])
  expect(await ac.deliveries.destinations()).toMatchObject([{ destination: 'bank', concurrency: 4 }])
  expect((await ac.workflows.check()).types).toMatchObject([{ decisions: 0, redacted: 2 }])
})

// #region basket
interface Basket {
  readonly items: ReadonlyMap<string, number>
}

const basket = defineWorkflow({
  type: 'basket',
  id: (input: { id: string; sku: string }) => input.id,
  initial: (): Basket => ({ items: new Map() }),
  evolve: ({ items }, { sku }: { type: 'put'; sku: string }) => ({
    items: new Map(items).set(sku, (items.get(sku) ?? 0) + 1),
  }),
  decide: (_, { sku }) => accept([{ type: 'put', sku }]),
  snapshots: {
    every: 20,
    keep: 2,
    encode: ({ items }) => ({ items: [...items] }),
    // The release before had { lamp: 2 } for [['lamp', 2]].
    decode(stored): Basket {
      const { items } = stored as { items: [string, number][] | Record<string, number> }
      return { items: new Map(Array.isArray(items) ? items : Object.entries(items)) }
    },
  },
})
// #endregion

it('the new release of the guide reads what the release before has stored', async () => {
  const { open, sql } = await openWorkflows()
  const [before, now] = [open(), open()]
  const old = defineWorkflow({
    type: 'basket',
    id: (input: { id: string; sku: string }) => input.id,
    initial: () => ({ items: {} as Record<string, number> }),
    evolve: ({ items }, { sku }: { type: 'put'; sku: string }) => ({
      items: { ...items, [sku]: (items[sku] ?? 0) + 1 },
    }),
    decide: (_, { sku }) => accept([{ type: 'put', sku }]),
    snapshots: { every: 20 },
  })
  before.workflows.register(old)
  now.workflows.register(basket)
  for (let n = 0; n < 21; n++) await before.workflows.execute(old, { id: '1', sku: n % 2 ? 'lamp' : 'desk' })
  expect(await findingsIn(now)).toEqual([])
  await sql.query('delete from aftercommit.events where version <= 20')
  expect((await now.workflows.query(basket, '1'))!.state.items).toEqual(
    new Map([
      ['desk', 11],
      ['lamp', 10],
    ]),
  )
})

it('the state at the last event of a life is the one that the next life begins with', async () => {
  const { open } = await openWorkflows()
  const ac = open()
  ac.workflows.register(fulfilment)
  await ac.workflows.execute(fulfilment, { type: 'place', orderId: '1', total: 9 })
  await ac.workflows.execute(fulfilment, { type: 'again', orderId: '1', total: 5 })
  const states = await Promise.all([1, 2, 3].map((version) => ac.workflows.stateAt(fulfilment, '1', version)))
  expect(states.map((found) => found?.state)).toEqual([
    { status: 'placed', total: 9, reminders: 0 },
    fulfilment.initial(),
    { status: 'placed', total: 5, reminders: 0 },
  ])
})

// #region check
async function findingsIn(ac: ReturnType<typeof createAftercommit>): Promise<string[]> {
  const { findings } = await ac.workflows.check()
  return findings.map(({ type, id, version, message, events, paths }) => {
    const differing = [...events.flatMap((event) => event.paths), ...paths].map(({ path }) => path)
    return `${type}/${id} at event ${version}: ${message} ${differing.join(', ')}`
  })
}
// #endregion
