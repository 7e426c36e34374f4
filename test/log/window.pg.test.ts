/** What one page costs the server: rows that it reads for a subscription with a filter, on tables without statistics. */
import { expect, it } from 'vitest'
import { boundsOf } from '../../src/events/index.ts'
import { selectWindow } from '../../src/log/window-statements.ts'
import { hasSystemPostgres, openDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type Plan, plansOf } from '../support/plans.ts'
import { instance, openLog } from './support/open-log.ts'

const EVENTS = 20_000
const servers = [18, 14, ...(hasSystemPostgres() ? (['system'] as const) : [])] as const

/** `bulk.all` but for one in a hundred, which is `bulk.one`, and one in ten thousand, which is `bulk.rare`. */
async function openLargeLog(major: (typeof servers)[number]) {
  const { url, sql } = await openLog({ major })
  const { rows } = await sql.query(`select c.oid::regclass::text as name from pg_inherits i join pg_class c
    on c.oid = i.inhrelid where i.inhparent = 'aftercommit.events'::regclass`)
  for (const { name } of rows) await sql.query(`alter table ${name} set (autovacuum_enabled = off)`)
  await sql.query(
    `insert into aftercommit.events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
     select 'event-' || n,
            case when n % 10000 = 7 then 'bulk.rare' when n % 100 = 3 then 'bulk.one' else 'bulk.all' end,
            'lamp', (n % 100)::text,
            jsonb_build_object('n', n, 'text', repeat('x', 200)),
            case when n % 10000 = 7 then '{"correlation_id": "rare"}'::jsonb else '{}' end, now()
       from generate_series(1, $1::int) n`,
    [EVENTS],
  )
  const plans = await plansOf(url)
  return { plans, ac: instance({ database: url }) }
}

it.each(
  servers.flatMap((major) => [
    { major, on: 'bulk.*', found: EVENTS, mostPages: 60 },
    { major, on: 'bulk.one', found: EVENTS / 100, mostPages: 4 },
    { major, on: 'bulk.rare', found: EVENTS / 10_000, mostPages: 4 },
  ]),
)('catching up on $on reads each event about once on Postgres $major', async ({ major, on, found, mostPages }) => {
  const { ac, plans } = await openLargeLog(major)
  let handled = 0
  const handle = ac.subscribe({ id: 'all', on: [on], from: 'start', handle: () => void handled++ })
  await ac.start()
  await eventually(async () => handled === found && (await handle.status()).lag === 0n)
  const pages = plans.filter(({ text }) => text.includes('.events') && text.includes('type ~'))
  const scans = pages.flatMap(({ nodes }) => nodes).filter(({ relation }) => relation?.startsWith('events'))
  expect(pages.length).toBeGreaterThan(0)
  expect(pages.length).toBeLessThanOrEqual(mostPages)
  expect(scans.reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(EVENTS * 1.2)
  expect(unwanted(pages)).toEqual(new Set())
})

it.each(servers.map((major) => ({ major })))(
  'lists, reads and traces find what lies many windows apart, in order, on Postgres $major',
  async ({ major }) => {
    const { ac, plans } = await openLargeLog(major)
    const positions = (events: readonly { position: bigint }[]) => events.map(({ position }) => Number(position))
    const rare = [7, 10_007]
    expect(positions(await ac.log.read({ on: ['bulk.rare'] }))).toEqual(rare)
    expect(positions(await ac.log.read({ on: ['bulk.rare'], limit: 1 }))).toEqual([7])
    expect(positions(await ac.log.read({ on: ['bulk.rare'], from: 7n }))).toEqual([10_007])
    expect(positions(await ac.log.list({ on: ['bulk.rare'] }))).toEqual(rare.toReversed())
    expect(positions(await ac.log.list({ on: ['bulk.rare'], limit: 1 }))).toEqual([10_007])
    expect(positions(await ac.log.list({ limit: 2 }))).toEqual([EVENTS, EVENTS - 1])
    expect(positions(await ac.log.list({ on: ['bulk.one'], limit: 150 }))).toHaveLength(150)
    expect(positions(await ac.log.list({ tenant: 'nobody' }))).toEqual([])
    expect(positions(await ac.log.correlated('rare'))).toEqual(rare)
    const aggregate = { type: 'lamp', id: '7' }
    const ofAggregate = Array.from({ length: EVENTS / 100 }, (_, n) => n * 100 + 7)
    expect(positions(await ac.log.stream(aggregate))).toEqual(ofAggregate)
    expect(positions(await ac.log.stream(aggregate, { limit: 2 }))).toEqual([7, 107])
    expect(positions(await ac.log.list({ aggregate, on: ['bulk.rare'] }))).toEqual(rare.toReversed())
    expect((await ac.log.last(aggregate))?.position).toBe(BigInt(EVENTS - 93))
    const reads = plans.filter(({ text }) => text.includes(') part'))
    expect(reads.length).toBeGreaterThan(12)
    expect(unwanted(reads)).toEqual(new Set())
  },
)

it('types of events that begin with null are found by the types that a client asks for', async () => {
  const { url } = await openLog()
  const ac = instance({ database: url })
  for (const type of ['null', 'nullable', 'other']) await ac.emitNow(type, { payload: {} })
  const db = openDatabase({ database: url })
  const typesOf = async (asked: string) => {
    const rows = await selectWindow(db, { after: 0n, upTo: 3n, limit: 3, types: boundsOf([asked])! })
    return rows.map(({ type }) => type)
  }
  expect(await typesOf('null')).toEqual(['null'])
  expect(await typesOf('null*')).toEqual(['null', 'nullable'])
})

function unwanted(plans: readonly Plan[]): Set<string> {
  const types = plans.flatMap(({ nodes }) => nodes.map(({ type }) => type))
  return new Set(types.filter((type) => /Sort|Bitmap|Seq/.test(type)))
}
