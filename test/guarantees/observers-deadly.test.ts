/** An action that ends the process is given up in the end, and nothing else is: not what others do for the same event. */
import { beforeAll, expect, it } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { httpReceiver } from '../support/receivers.ts'
import { callRule, eventId, LOOPBACK, openObserving } from './support/observe.ts'

beforeAll(buildPackage)

const deadlyRule = (keys: string) => `
[observers.deadly]
on = "lamp.lit"
${keys}
retry = { max_attempts = 2, schedule = ["10ms"] }
actions = [{ type = "custom", handler = "end" }]
`
/** The last one: nothing that is read after it moves the checkpoint past it. */
const HANDLERS = `
export default (ac) =>
  ac.observers.action('end', (event) => {
    if (event.id === 'event-4') process.exit(9)
  })
`

it.each([
  ['without order', ''],
  ['in order', 'order_by = "aggregate"'],
])('what an event asks for besides what ends the process is done, %s', async (_, order) => {
  const receiver = await httpReceiver()
  const game = await openObserving(LOOPBACK + callRule('call', receiver.url, order) + deadlyRule(order))
  game.write(HANDLERS, 'handlers.mjs')
  const first = await game.start('--import', 'handlers.mjs')
  await game.emit(4)
  await first.exited
  const isOver = async () => (await game.letters()).length > 0 && (await game.deliveries()) === 0
  const over = eventually(isOver, { deadline: 120_000 }).then(() => 'lives' as const)
  let deaths = 1
  for (;;) {
    // It may die before it says that it is ready.
    const running = await game.start('--import', 'handlers.mjs').catch(() => undefined)
    const died = running?.exited.then(() => 'died' as const) ?? 'died'
    if ((await Promise.race([died, over])) === 'lives') break
    deaths++
    expect(deaths).toBeLessThan(10)
  }
  const letters = (await game.letters()).map(({ owner, error, event }) => [owner, error.code, event.id])
  expect(letters).toEqual([['deadly/custom', 'PROCESS_DIED', 'event-4']])
  expect(new Set(receiver.calls.map(eventId))).toEqual(new Set(['event-1', 'event-2', 'event-3', 'event-4']))
  await eventually(() => game.isPassed())
})
