/** `[destinations]` limits what workflows go to as well, by the word that they have for it. */
import { expect, test } from 'vitest'
import { accept, defineWorkflow } from '../../src/index.ts'
import { gate } from '../delivery/support/open-operating.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { rulesFile } from './support/search-rules.ts'

const CARDS = 'card payments'
const ORIGIN = 'https://pay.example.com'

/** Pays, by card or over an address. */
const payments = defineWorkflow({
  type: 'payments',
  id: (input: { id: string; to: string }) => input.id,
  initial: () => 0,
  evolve: (count: number, _: { type: 'asked' }) => count + 1,
  decide: (_, { to }) => accept([{ type: 'asked' }], { effects: [{ type: 'pay' as const, to }] }),
  destination: (effect: { type: 'pay'; to: string }) => effect.to,
})

test.each([CARDS, ORIGIN])('effects that go to %s keep the limit of the file over all processes', async (to) => {
  const { ac, another } = await openSubscriptions()
  const file = rulesFile(`[destinations."${to}"]\nconcurrency = 1\n`)
  const begun: number[] = []
  let running = 0
  const asked = gate()
  const processes = [ac, another()]
  for (const one of processes) {
    one.workflows.register(payments, {
      effects: {
        async pay() {
          begun.push(++running)
          await asked.opened
          await new Promise(setImmediate)
          running--
        },
      },
    })
    await one.observers.loadFile(file)
    await one.start()
  }
  for (let n = 0; n < 20; n++) await ac.workflows.execute(payments, { id: String(n), to })
  asked.open()
  await eventually(() => begun.length === 20)
  expect(Math.max(...begun)).toBe(1)
  expect(await ac.deliveries.findDestinations(to)).toContain(to)
})

test('rate and burst of a word are in force with the file, and gone with the next', async () => {
  const { ac } = await openSubscriptions()
  await ac.observers.loadFile(rulesFile(`[destinations."${CARDS}"]\nrate = "600/m"\nburst = 3\n`))
  await ac.start()
  const cards = async () => (await ac.deliveries.destinations()).find(({ destination }) => destination === CARDS)
  expect(await cards()).toMatchObject({ concurrency: null, rate: 10, burst: 3 })
  await ac.observers.loadFile(rulesFile('[destinations.other]\nconcurrency = 2\n'))
  expect(await cards()).toMatchObject({ concurrency: null, rate: null, burst: null })
})
