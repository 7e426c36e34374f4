import { expect, test } from 'vitest'
import { createAftercommit } from '../../src/index.ts'
import { testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'

test('a process that is started before its database waits, says so, and runs once it is there', async () => {
  const db = await testDatabase()
  const proxy = await createProxy(db.url)
  const first = createAftercommit({ database: db.url, schema: db.schema })
  await first.migrate()
  await first.stop()

  proxy.reject('57P03', 'the database system is starting up')
  const ac = createAftercommit({ database: proxy.url, schema: db.schema })
  const handled: string[] = []
  ac.subscribe({ id: 'early', handle: (event) => handled.push(event.id) })
  const started = ac.start()
  await eventually(() => expect(ac.health()).toMatchObject({ live: true, ready: false }))
  proxy.pass()
  await started
  const { id } = await ac.transaction((tx) => tx.emit('order.placed', { payload: {} }))
  await eventually(() => expect(handled).toEqual([id]))
  await eventually(() => expect(ac.health().ready).toBe(true))
  await ac.stop()
})

test('a process that is stopped while it waits for its database ends', async () => {
  const ac = createAftercommit({ database: 'postgres://nobody@127.0.0.1:1/none' })
  const refused = expect(ac.start()).rejects.toMatchObject({ code: 'STOPPED' })
  await eventually(() => expect(ac.health().ready).toBe(false))
  await ac.stop()
  await refused
})
