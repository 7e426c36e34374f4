import { expect, it } from 'vitest'
import type { Missed, SystemEvent } from '../../src/hooks/index.ts'
import { eventually } from '../support/eventually.ts'
import { openHooks } from './support/open-hooks.ts'

it('everybody who listens hears every event of the log, whoever wrote it', async () => {
  const { ac, sql, emitMany } = await openHooks()
  const early = listen(ac.broadcaster.subscribe())
  await ac.start()
  const late = listen(ac.broadcaster.subscribe())
  await emitMany(5_000)
  await sql.query(
    `select aftercommit.emit('order.deleted', 'order', '42', '{}'), aftercommit.emit('auth.login', null, null, '{"ip": "10.0.0.1"}')`,
  )
  for (const heard of [early, late]) {
    await eventually(() => heard.length === 5_002)
    expect(heard.filter((item) => 'missed' in item)).toEqual([])
    expect(heard.at(-2)).toMatchObject({ about: 'resource', kind: 'deleted', entity: 'order', id: '42' })
    expect(heard.at(-1)).toMatchObject({ about: 'auth', type: 'login' })
  }
  await ac.stop()
  expect(ac.broadcaster.subscriberCount).toBe(0)
})

it('one that does not read is told what it missed and holds up nobody', async () => {
  const { ac, emitMany } = await openHooks()
  await ac.start()
  const slow = ac.broadcaster.subscribe()
  const quick = listen(ac.broadcaster.subscribe())
  await emitMany(3_000)
  await eventually(() => quick.length === 3_000)
  expect((await slow.next()).value).toEqual({ missed: 3_000 - 1_024 })
  expect((await slow.next()).value).toMatchObject({ about: 'resource', type: 'lamp.lit' })
  expect(await ac.metrics()).toContain(`aftercommit_overflow_total{policy="drop_oldest"} ${3_000 - 1_024}`)
  expect(await ac.metrics()).toContain('aftercommit_overflow_total{policy="drop"} 0')
})

it('keeps as many as it is told to, and with `drop` a slow one goes on with what is new', async () => {
  const { ac, emitMany } = await openHooks({ broadcaster: { ring: 100 }, runtime: { overflowPolicy: 'drop' } })
  await ac.start()
  const slow = ac.broadcaster.subscribe()
  const quick = listen(ac.broadcaster.subscribe())
  await emitMany(300)
  await eventually(() => quick.length === 300)
  expect((await slow.next()).value).toEqual({ missed: 300 })
  await emitMany(1, { prefix: 'new-' })
  await eventually(() => quick.length === 301)
  expect((await slow.next()).value).toEqual(quick.at(-1))
  expect(await ac.metrics()).toContain('aftercommit_overflow_total{policy="drop"} 300')
})

function listen(reader: AsyncIterable<SystemEvent | Missed>): (SystemEvent | Missed)[] {
  const heard: (SystemEvent | Missed)[] = []
  void (async () => {
    for await (const item of reader) heard.push(item)
  })()
  return heard
}
