/** A row and its event are written together or not at all, at whatever moment the process is killed. */
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { SERVERS } from '../log/support/open-log.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { spawnScript } from '../support/processes.ts'

const CREATE_ORDER = fileURLToPath(new URL('../hooks/support/create-order.mjs', import.meta.url))

beforeAll(buildPackage)

describe.each(SERVERS)('evented storage, on Postgres $major', ({ major }) => {
  it.each([
    ['write', 'neither', 0],
    ['emit', 'neither', 0],
    ['commit', 'both', 1],
  ] as const)('of a process killed after the %s there is %s', async (when, _, kept) => {
    const { ac, url, sql } = await openSubscriptions({ major })
    await sql.query('create table orders (id text primary key, total int, note text)')
    const child = spawnScript(CREATE_ORDER, [url, when])
    await child.waitForLine(`dying after ${when}`)
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' })
    // Waits for the transaction of the killed process, should the server not have noticed yet.
    await sql.query('begin; lock table orders in access exclusive mode; commit')
    expect((await sql.query('select from orders')).rowCount).toBe(kept)
    expect((await ac.log.list()).map(({ type, key }) => [type, key])).toEqual(
      Array(kept).fill(['order.created', 'order/42']),
    )
  })
})
