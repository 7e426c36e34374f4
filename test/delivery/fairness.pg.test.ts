/** A tenant with much to do does not keep another one waiting until all of it is done. */
import { expect, test } from 'vitest'
import { saveLimits } from '../../src/delivery/index.ts'
import { eventually } from '../support/eventually.ts'
import { mails, openDelivering, work } from './support/open-delivering.ts'
import { gate } from './support/open-operating.ts'

const MANY = 500
const FEW = 5

/** Who was served, in order: a worker is busy, many rows of one tenant are added, and then a few of another one. */
async function serve(concurrency: number, words: object = {}, limit?: number): Promise<string[]> {
  const { worker } = await openDelivering()
  const one = await worker({ concurrency })
  if (limit !== undefined)
    await saveLimits(one.database, [{ destination: 'erp', concurrency: limit, rate: null, burst: null }])
  const served: string[] = []
  const added = gate()
  one.register(
    work(async ({ tenant }) => {
      await added.opened
      served.push(tenant)
    }),
  )
  await one.add(one.database, mails(MANY, { tenant: 'many', ...words }))
  // The worker has claimed what it can of the first tenant before there is a second one.
  await eventually(async () => {
    const { rows } = await one.database.query('select from aftercommit.deliveries where token is not null limit 1')
    return rows.length > 0
  })
  await one.add(one.database, mails(FEW, { tenant: 'few', ...words }))
  added.open()
  await eventually(() => served.length === MANY + FEW)
  return served
}

const places = (served: readonly string[]) => served.flatMap((tenant, at) => (tenant === 'few' ? [at] : []))

test.each([1, 4, 50])('a tenant with a few rows is served among many of another, %i at a time', async (concurrency) => {
  const at = places(await serve(concurrency))
  expect(at).toHaveLength(FEW)
  expect(at.at(-1)).toBeLessThan(MANY / 2)
})

test('so it is where both wait for the limit of one destination', async () => {
  const at = places(await serve(10, { destination: 'erp' }, 2))
  expect(at).toHaveLength(FEW)
  expect(at.at(-1)).toBeLessThan(MANY / 2)
})

test('so it is where one destination has more tenants than places', async () => {
  const { worker } = await openDelivering()
  const one = await worker({ concurrency: 4 })
  const served: string[] = []
  const tenants = Array.from({ length: 20 }, (_, n) => mails(50, { tenant: `tenant ${n}`, destination: 'erp' }))
  await one.add(one.database, tenants.flat())
  one.register(work(({ tenant }) => void served.push(tenant)))
  await eventually(() => served.length === 1_000)
  const firsts = new Map(served.map((tenant, at) => [tenant, at] as const).reverse())
  expect(firsts.size).toBe(20)
  expect(Math.max(...firsts.values())).toBeLessThan(500)
})

test('a hundred tenants with one row each are all served before one with many is done', async () => {
  const { worker } = await openDelivering()
  const one = await worker({ concurrency: 4 })
  const served: string[] = []
  await one.add(one.database, mails(MANY, { tenant: 'many' }))
  const others = Array.from({ length: 100 }, (_, n) => mails(1, { tenant: `tenant ${n}` }))
  await one.add(one.database, others.flat())
  one.register(work(({ tenant }) => void served.push(tenant)))
  await eventually(() => served.length === MANY + 100)
  const last = served.findLastIndex((tenant) => tenant !== 'many')
  expect(last).toBeLessThan(MANY / 2)
})
