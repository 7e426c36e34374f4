/**
 * Every process hears every event from its start on: over lost connections, from whoever writes, and when it cannot, it
 * says that it is not ready and loads anew. What runs once per cluster goes on when its process is killed.
 */
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { reloadHook, revocationHook } from '../../src/hooks/index.ts'
import { ear } from '../hooks/support/open-hooks.ts'
import { instance, SERVERS } from '../log/support/open-log.ts'
import { numbered, openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { createProxy } from '../support/proxy.ts'

const SAY_HANDLED = fileURLToPath(new URL('../hooks/support/say-handled.mjs', import.meta.url))

beforeAll(buildPackage)

describe.each(SERVERS)('on Postgres $major', ({ major }) => {
  it('what is emitted while an instance is cut off reaches it when it is back, once and in order', async () => {
    const { url, emitMany } = await openSubscriptions({ major })
    const proxy = await createProxy(url)
    const ac = instance({ database: proxy.url })
    const { handle, heard } = ear()
    ac.hooks.add({ name: 'all', scope: 'instance', key: () => 'all', handle })
    await ac.start()
    await emitMany(100, { prefix: 'before-' })
    await eventually(() => heard.length === 100)
    proxy.reset()
    await emitMany(3_000, { prefix: 'meanwhile-' })
    await eventually(() => !ac.health().ready)
    proxy.pass()
    await eventually(() => heard.length >= 3_100, { deadline: 60_000 })
    expect(heard.map(({ id }) => id)).toEqual([...numbered(100, 'before-'), ...numbered(3_000, 'meanwhile-')])
    await eventually(() => ac.health().ready)
  })

  it('a token that was revoked while an instance was cut off is refused there once it is ready again', async () => {
    const { ac, url } = await openSubscriptions({ major })
    const proxy = await createProxy(url)
    const away = instance({ database: proxy.url })
    const revocation = revocationHook()
    away.hooks.add(revocation)
    await away.start()
    proxy.reset()
    await eventually(() => !away.health().ready)
    await ac.emitAuth({ type: 'token_revoked', tokenId: 't1' })
    proxy.pass()
    await eventually(() => away.health().ready && revocation.isRevoked('t1'), { deadline: 60_000 })
  })

  it('what runs once per cluster goes on when its process is killed, and leaves nothing out', async () => {
    const { url, emitMany } = await openSubscriptions({ major })
    const first = spawnScript(SAY_HANDLED, [url])
    await first.waitForLine('started')
    await emitMany(300)
    await first.waitForLine('handled event-40')
    first.kill('SIGKILL')
    await first.exited
    const second = spawnScript(SAY_HANDLED, [url])
    await second.waitForLine('handled event-300', 60_000)
    await eventually(() => {
      const handled = new Set([...first.lines, ...second.lines].filter((line) => line.startsWith('handled ')))
      return handled.size === 300
    })
  })

  it('a cache follows writes that are committed out of order of their positions', async () => {
    const { ac, url, sql } = await openSubscriptions({ major })
    await sql.query('create table settings (id int primary key, value int)')
    const cache = new Map<number, number>()
    ac.hooks.add(
      reloadHook({
        name: 'settings',
        debounce: '1ms',
        async reload() {
          const { rows } = await ac.transaction((tx) =>
            tx.query<{ id: number; value: number }>('select * from settings'),
          )
          cache.clear()
          for (const { id, value } of rows) cache.set(id, value)
        },
      }),
    )
    await ac.start()
    const writers = Array.from({ length: 8 }, () => instance({ database: url, poolSize: 2 }))
    await Promise.all(
      writers.map(async (writer, id) => {
        for (let value = 1; value <= 25; value++) {
          await writer.transaction(async (tx) => {
            await tx.emit('setting.changed', { aggregate: { type: 'setting', id: `${id}` }, payload: {} })
            await tx.query(
              'insert into settings values ($1::int, $2::int) on conflict (id) do update set value = excluded.value',
              [id, value],
            )
          })
        }
      }),
    )
    await eventually(() => writers.every((_, id) => cache.get(id) === 25))
  })
})
