/** Destinations are called as people know them: by name, or by an origin for all that goes there. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { mails, work } from './support/open-delivering.ts'
import { openOperating } from './support/open-operating.ts'

const ERP = 'https://erp.example.com'
const HOOK = { destination: `webhook ${ERP}` }
const SEARCH = { destination: `search ${ERP}` }
const CRM = { destination: 'webhook https://crm.example.com' }

test('an origin pauses and resumes every destination there, and no other', async () => {
  const { deliveries, worker, audit } = await openOperating()
  const one = await worker()
  await one.add(one.database, [...mails(2, HOOK), ...mails(1, SEARCH), ...mails(1, CRM)])
  expect(await deliveries.pause({ destination: ERP }, { who: 'ada', reason: 'maintenance' })).toEqual([SEARCH, HOOK])
  const sent: string[] = []
  one.register(work(({ destination }) => void sent.push(destination)))
  await eventually(async () => (await deliveries.count()).waiting === 0 && sent.length > 0)
  expect(sent).toEqual([CRM.destination])
  expect(await deliveries.count({ destination: ERP })).toMatchObject({ paused: 3, waiting: 0 })
  expect((await deliveries.list({ destination: `${ERP}/` })).map(({ destination }) => destination)).toEqual([
    HOOK.destination,
    HOOK.destination,
    SEARCH.destination,
  ])
  expect(await deliveries.list(HOOK)).toHaveLength(2)

  expect(await deliveries.resume(SEARCH)).toEqual([SEARCH])
  expect(await deliveries.resume({ destination: ERP }, { who: 'ada' })).toEqual([HOOK])
  expect(await deliveries.resume({ destination: ERP })).toEqual([])
  await eventually(() => sent.length === 4)
  expect(await audit()).toMatchObject([
    { who: 'ada', what: 'delivery.pause', target: SEARCH.destination, reason: 'maintenance' },
    { who: 'ada', what: 'delivery.pause', target: HOOK.destination, reason: 'maintenance' },
    { what: 'delivery.resume', target: SEARCH.destination },
    { who: 'ada', what: 'delivery.resume', target: HOOK.destination },
  ])
})

test('a destination that nothing has gone to is neither paused nor resumed, and nothing is written', async () => {
  const { deliveries, worker, audit, sql } = await openOperating()
  const one = await worker()
  await one.add(one.database, mails(1, HOOK))
  for (const destination of ['https://epr.example.com', `slack ${ERP}`]) {
    const unknown = { code: 'UNKNOWN_DESTINATION', message: expect.stringContaining('Did you mean') }
    await expect(deliveries.pause({ destination })).rejects.toMatchObject(unknown)
    await expect(deliveries.resume({ destination })).rejects.toMatchObject(unknown)
    await expect(deliveries.findDestinations(destination)).rejects.toMatchObject(unknown)
    expect(await deliveries.list({ destination })).toEqual([])
  }
  expect(await deliveries.findDestinations(ERP)).toEqual([HOOK.destination])
  expect(await audit()).toEqual([])
  expect((await sql.query('select from aftercommit.destinations')).rowCount).toBe(0)
})
