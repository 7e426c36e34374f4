/** A destination that says it is gone for good pauses the name that went there, once. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { mails, work } from './support/open-delivering.ts'
import { gate, openOperating } from './support/open-operating.ts'

const MAIL = { kind: 'effect', name: 'mail' } as const
const gone = () => Object.assign(new Error('410'), { transient: false, gone: true })

test('many that are told so at once are one pause and one line, and nothing else of the destination is held back', async () => {
  const { deliveries, worker, audit } = await openOperating()
  const one = await worker()
  const told = gate()
  let calls = 0
  one.register(
    work(async () => {
      calls++
      await told.opened
      throw gone()
    }),
  )
  const sent: string[] = []
  one.register(work(({ name }) => void sent.push(name), { name: 'fax' }))
  await one.add(one.database, mails(10, { destination: 'erp' }))
  await eventually(() => calls === 10)
  told.open()
  await eventually(async () => (await deliveries.count()).running === 0)
  expect(await deliveries.pauses()).toMatchObject([{ ...MAIL, who: 'aftercommit' }])
  expect(await audit()).toMatchObject([{ who: 'aftercommit', what: 'delivery.pause', target: 'effect mail' }])
  expect(one.lines.filter((line) => line.includes('gone for good'))).toHaveLength(1)
  await one.add(one.database, [...mails(3, { destination: 'erp' }), ...mails(2, { name: 'fax', destination: 'erp' })])
  await eventually(() => sent.length === 2)
  expect(calls).toBe(10)
  expect(await deliveries.count()).toMatchObject({ paused: 3 })
  expect(await deliveries.resume(MAIL)).toEqual([MAIL])
  await eventually(() => calls === 13)
})

test('what a person had paused before stays theirs', async () => {
  const { deliveries, worker } = await openOperating()
  const one = await worker()
  const told = gate()
  const begun = gate()
  one.register(
    work(async () => {
      begun.open()
      await told.opened
      throw gone()
    }),
  )
  await one.add(one.database, mails(1))
  await begun.opened
  await deliveries.pause(MAIL, { who: 'ada', reason: 'moving' })
  told.open()
  await eventually(async () => (await deliveries.count()).running === 0)
  expect(await deliveries.pauses()).toMatchObject([{ ...MAIL, who: 'ada', reason: 'moving' }])
})
