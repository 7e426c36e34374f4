/** `max_concurrency` is one number for first attempts and rows of a process. */
import { expect, it, onTestFinished } from 'vitest'
import { gate } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { mails, work } from './support/open-delivering.ts'
import { never, reacting, reaction } from './support/reacting.ts'

it('first attempts and rows of a process together have no more calls under way than its concurrency', async () => {
  const { one, reactions } = await reacting(() => ({ concurrency: 4 }))
  let [running, most, rows, first] = [0, 0, 0, 0]
  const call = async () => {
    most = Math.max(most, ++running)
    for (let n = 0; n < 20; n++) await new Promise(setImmediate)
    running--
  }
  one.register(
    work(async () => {
      await call()
      rows++
    }),
  )
  const direct = reaction(
    () => {},
    async () => {
      await call()
      first++
    },
    { name: 'fax' },
  )
  await one.add(one.database, mails(100))
  await Promise.all(Array.from({ length: 100 }, () => reactions.react([direct], never)))
  await eventually(() => rows === 100 && first === 100)
  expect(most).toBe(4)
})

it('a row of a limited destination is claimed although first attempts have all places, and runs when one of them ends', async () => {
  const { one, reactions, rows, sql } = await reacting(() => ({ concurrency: 4 }))
  await sql.query(`insert into aftercommit.destinations (destination, concurrency) values ('erp', 1)`)
  const { passed, open } = gate()
  let begun = 0
  const held = (name: string) =>
    reaction(
      () => {},
      () => {
        begun++
        return passed
      },
      { name },
    )
  const first = reactions.react(['fax', 'fax', 'sms', 'sms'].map(held), never)
  await eventually(() => begun === 4)
  let ran = 0
  one.register(work(() => void ran++))
  await one.add(one.database, mails(1, { destination: 'erp' }))
  await eventually(async () => (await rows('token is not null')) === 1)
  open()
  await first
  await eventually(() => ran === 1)
})

it.each([1, 2])(
  'with a concurrency of %i a row runs beside endless first attempts to its destination',
  async (concurrency) => {
    const { one, reactions } = await reacting(() => ({ concurrency }))
    let isOver = false
    onTestFinished(() => {
      isOver = true
    })
    const direct = reaction(
      () => {},
      async () => {
        for (let n = 0; n < 20; n++) await new Promise(setImmediate)
      },
      { name: 'fax', destination: 'erp' },
    )
    const first = Array.from({ length: 4 }, async () => {
      while (!isOver) await reactions.react([direct], never)
    })
    one.register(
      work(() => {
        isOver = true
      }),
    )
    await one.add(one.database, mails(1, { destination: 'erp' }))
    await Promise.all(first)
  },
)
