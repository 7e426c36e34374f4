/**
 * A firewall or a new pod address loses the connections of a process, and the server keeps the old sessions with their
 * locks, as nobody told it. The process works again as soon as the path is back, while the old sessions still live.
 * `AFTERCOMMIT_PATH_SECONDS`: how long the path is lost.
 */
import { setTimeout as passTime } from 'node:timers/promises'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy, type Proxy as NetworkProxy } from '../support/proxy.ts'
import { fulfilment } from '../workflows/support/fulfilment.ts'

const LONG_SECONDS = process.env.AFTERCOMMIT_PATH_SECONDS
const SECONDS = Number(LONG_SECONDS ?? 2)
/** The long form also plays a path that swallows everything: a process needs 15 s to notice that nobody answers. */
const WAYS = LONG_SECONDS === undefined ? (['lose', 'strand'] as const) : (['lose', 'strand', 'blackhole'] as const)
const GAMES = [1, 2].flatMap((processes) => WAYS.map((way) => ({ processes, way })))
const DEADLINE = { deadline: 60_000 }

/** Sessions of LISTEN connections that hold a lock, by process id of the server. */
async function lockHolders(sql: pg.Client): Promise<number[]> {
  const { rows } = await sql.query<{ pid: number }>(
    `select distinct pid from pg_stat_activity join pg_locks using (pid)
      where datname = current_database() and application_name like 'aftercommit:listen%' and locktype = 'advisory'
      order by pid`,
  )
  return rows.map(({ pid }) => pid)
}

async function playLostPath(proxies: readonly NetworkProxy[], way: (typeof WAYS)[number]): Promise<void> {
  for (const proxy of proxies) proxy[way]()
  await passTime(SECONDS * 1_000)
  for (const proxy of proxies) proxy.pass()
}

describe.each(GAMES)('$processes processes and a proxy that does "$way"', ({ processes, way }) => {
  it('subscriptions and deliveries go on after a lost path, while the server still keeps the old sessions', async () => {
    const { ac: outside, url, sql, emit } = await openSubscriptions()
    outside.workflows.register(fulfilment, { effects: { charge: 'elsewhere', notify: 'elsewhere' } })
    const place = (orderId: string) => outside.workflows.execute(fulfilment, { type: 'place', orderId, total: 1 })
    const proxies = await Promise.all(Array.from({ length: processes }, () => createProxy(url)))
    const workers = proxies.map((proxy) => instance({ database: proxy.url }))
    const seen = recorder()
    const charged: string[] = []
    const charge = ({ orderId }: { orderId: string }) => void charged.push(orderId)
    for (const ac of workers) {
      ac.subscribe({ id: 'sub', handle: seen.handle })
      ac.workflows.register(fulfilment, { effects: { charge, notify: 'elsewhere' } })
      await ac.start()
    }
    await emit('before')
    await place('before')
    await eventually(() => seen.ids.includes('before') && charged.includes('before'), DEADLINE)
    const old = await eventually(async () => {
      const holders = await lockHolders(sql)
      return holders.length === processes && holders
    })

    const lost = playLostPath(proxies, way)
    await emit('meanwhile')
    await place('meanwhile')
    await lost
    await eventually(() => seen.ids.includes('meanwhile') && charged.includes('meanwhile'), DEADLINE)
    await emit('after')
    await place('after')
    await eventually(() => seen.ids.includes('after') && charged.includes('after'), DEADLINE)

    expect(await lockHolders(sql)).toEqual(expect.arrayContaining(old))
    await eventually(() => workers.every((ac) => ac.health().ready), DEADLINE)
  })
})

// In the long form alone: a lease takes fifteen seconds to run out.
if (LONG_SECONDS !== undefined) {
  it('a process that lost its LISTEN path alone leaves its subscriptions to another after a lease', async () => {
    const { url, emit } = await openSubscriptions()
    const proxy = await createProxy(url)
    const [lonely, other] = [instance({ database: url, directDatabase: proxy.url }), instance({ database: url })]
    const [seen, seenByOther] = [recorder(), recorder()]
    lonely.subscribe({ id: 'sub', handle: seen.handle })
    await lonely.start()
    await emit('before')
    await seen.sees('before')
    other.subscribe({ id: 'sub', handle: seenByOther.handle })
    await other.start()

    proxy.lose()
    await emit('meanwhile')
    await eventually(() => seenByOther.ids.includes('meanwhile'), DEADLINE)
    expect(seen.ids).toEqual(['before'])
    expect(lonely.health()).toMatchObject({ ready: false })
    proxy.pass()
    await eventually(() => lonely.health().ready, DEADLINE)
  })
}
