import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { connect, serverUrl } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { counter, fulfilment } from './support/fulfilment.ts'
import { openWorkflows } from './support/open-workflows.ts'

it('a role that may run has all the rights that workflows and schedules need, and cannot change a history', async () => {
  const { open, url, sql } = await openWorkflows()
  const role = `ac_run_${randomBytes(4).toString('hex')}`
  const cluster = await connect(serverUrl())
  await cluster.query(`create role ${role} login`)
  onTestFinished(async () => {
    await sql.query(`drop owned by ${role}`).catch(() => {})
    await cluster.query(`drop role ${role}`).catch(() => {})
  })
  await open().migrate({ grantRun: [role] })
  const ac = open({ database: url.replace(/\/\/[^/@]*@/, `//${role}@`) })
  ac.workflows.register(fulfilment, {
    effects: { charge: ({ orderId }) => ({ type: 'paid', orderId, by: 'card' }), notify: 'elsewhere' },
  })
  ac.workflows.register(counter)
  await ac.schedules.add({ id: 'count', cron: '* * * * * *', execute: { workflow: counter, input: { id: 'a' } } })
  await ac.start()
  await ac.workflows.execute(fulfilment, { type: 'place', orderId: '1', total: 5, key: 'k' }, { inputId: 'i' })
  await eventually(async () => (await ac.workflows.query(fulfilment, '1'))?.state.status === 'paid')
  await eventually(async () => ((await ac.workflows.query(counter, 'a'))?.version ?? 0) > 0)
  expect(await ac.workflows.pause({ type: 'fulfilment', id: '1' })).toBe(true)
  expect(await ac.workflows.resume({ type: 'fulfilment', id: '1' })).toBe(true)
  expect((await ac.workflows.check()).findings).toEqual([])
  expect(await ac.workflows.timers()).toEqual([])
  await ac.schedules.remove('count')
  const runner = await connect(url.replace(/\/\/[^/@]*@/, `//${role}@`))
  for (const statement of [
    'update aftercommit.events set payload = null',
    'delete from aftercommit.workflow_snapshots',
  ])
    await expect(runner.query(statement)).rejects.toMatchObject({ code: '42501' })
  const stranger = `ac_no_${randomBytes(4).toString('hex')}`
  await cluster.query(`create role ${stranger} login`)
  onTestFinished(async () => void (await cluster.query(`drop role ${stranger}`).catch(() => {})))
  const outsider = await connect(url.replace(/\/\/[^/@]*@/, `//${stranger}@`))
  await expect(
    outsider.query(`select aftercommit.workflow_load('fulfilment', '1', false, 0, 0, 1)`),
  ).rejects.toMatchObject({ code: '42501' })
})
