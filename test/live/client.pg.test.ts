/** The browser client against real servers, one of which is killed. */
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { type ConnectOptions, connect } from '../../src/client/index.ts'
import { defineEvents } from '../../src/events/index.ts'
import { emitMany, numbered } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect as connectSql, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { openSse } from './sse-support.ts'

beforeAll(buildPackage)

const events = defineEvents({
  'lamp.lit': z.object({ volts: z.number() }),
  'lamp.dark': z.object({ since: z.string() }),
})

it('knows the events of a catalogue by their types', async () => {
  const { feedUrl, emit } = await openSse()
  const volts: number[] = []
  const { opened } = follow<typeof events>({
    url: feedUrl,
    headers: { 'x-user': 'ada' },
    onEvent(event) {
      if (event.type === 'lamp.lit') volts.push(event.data.volts)
      // @ts-expect-error: a lamp that is dark has no volts.
      else volts.push(event.data.volts)
    },
  })
  await opened
  await emit('one', { payload: { volts: 3 } })
  await eventually(() => volts.length === 1)
  expect(volts).toEqual([3])
})

it('goes on where it was when its server is killed and another takes over', async () => {
  const { url } = await testDatabase({ migrated: true })
  const sql = await connectSql(url)
  const first = await startServer(url, 0)
  const ids: string[] = []
  const { connection, opened } = follow({
    url: `http://127.0.0.1:${first.port}/feed`,
    headers: { authorization: 'Bearer of news' },
    onEvent: ({ id }) => ids.push(id),
  })
  await opened
  await emitMany(sql, 200)
  await eventually(() => ids.length >= 100)
  first.server.kill()
  await first.server.exited
  await emitMany(sql, 300, { prefix: 'meanwhile-' })
  const second = await startServer(url, first.port)
  await emitMany(sql, 1, { prefix: 'last-' })
  await eventually(() => ids.includes('last-1'))
  expect(ids).toEqual([...numbered(200), ...numbered(300, 'meanwhile-'), 'last-1'])
  connection.close()
  expect(await connection.closed).toBeUndefined()
  second.server.kill()
})

async function startServer(url: string, port: number) {
  const server = spawnScript(fileURLToPath(new URL('sse-server.mjs', import.meta.url)), [url, String(port)])
  const line = await server.waitForLine('listening on')
  return { server, port: Number(line.split(' ').at(-1)) }
}

/** `opened` resolves once it has a place to resume after. */
function follow<C extends { schemas: object } = { schemas: object }>(options: Omit<ConnectOptions<C>, 'onResync'>) {
  const connection = connect<C>({
    ...options,
    onResync(token) {
      throw new Error(`was told to load anew at ${token}`)
    },
  })
  onTestFinished(() => connection.close())
  return { connection, opened: eventually(() => connection.token !== undefined) }
}
