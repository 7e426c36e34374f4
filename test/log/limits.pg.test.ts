/** The limits of the log hold in the database for every way in, and readers pass what an older log holds beyond them. */
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { revocationHook } from '../../src/hooks/index.ts'
import { LARGEST_EVENT } from '../../src/log/event-row.ts'
import { ear, openHooks } from '../hooks/support/open-hooks.ts'
import { openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { follow, openLog, SERVERS } from './support/open-log.ts'

const json = (value: string) => `${value}::jsonb`
const nested = (levels: number) => json(`(repeat('[', ${levels}) || repeat(']', ${levels}))`)
const large = `to_jsonb(repeat('x', 1100000))`
const META = `'{"correlation_id": "c"}'::jsonb`

/** What no way in takes, as the arguments of an append: aggregate, payload, metadata, extra. */
const BEYOND: [string, string, { aggregate?: string; payload?: string; metadata?: string; extra?: string }][] = [
  ['a payload of 1.1 MB', 'AC005', { payload: large }],
  ['a compressed payload of 1.1 MB', 'AC005', { payload: '(select content from kept)' }],
  ['metadata of 1.1 MB', 'AC005', { metadata: `jsonb_build_object('x', ${large})` }],
  ['changes of 1.1 MB', 'AC005', { extra: `jsonb_build_object('changes', ${large})` }],
  [
    'an image before of 1.1 MB',
    'AC005',
    { extra: `jsonb_build_object('previous', jsonb_build_object('x', ${large}))` },
  ],
  ['a few large exponents', 'AC005', { payload: json(`('[' || repeat('1e131000,', 9) || '-1e131000]')`) }],
  ['a megabyte of large exponents', 'AC005', { payload: json(`('[' || repeat('1e131000,', 100000) || '1]')`) }],
  ['a megabyte of small exponents', 'AC005', { payload: json(`('[' || repeat('-1e-16000,', 100000) || '0]')`) }],
  ['a payload of 65 levels', 'AC016', { payload: nested(65) }],
  ['a payload of 5,000 levels', 'AC016', { payload: nested(5_000) }],
  ['metadata of 66 levels', 'AC016', { metadata: `jsonb_build_object('x', ${nested(65)})` }],
  ['changes of 68 levels', 'AC016', { extra: `jsonb_build_object('changes', jsonb_build_object('x', ${nested(67)}))` }],
  ['a tenant of 256 characters', 'AC004', { extra: `jsonb_build_object('tenant', repeat('t', 256))` }],
  ['an aggregate of 256 characters', 'AC004', { aggregate: `repeat('a', 256)` }],
  ['an aggregate without a name', 'AC004', { aggregate: `''` }],
]

const NONE = { aggregate: `'a'`, payload: `'{}'::jsonb`, metadata: META, extra: 'null::jsonb' }
const one = (given: (typeof BEYOND)[number][2]) => {
  const { aggregate, payload, metadata, extra } = { ...NONE, ...given }
  return `select aftercommit.append('i', 'lamp.lit', 'lamp', ${aggregate}, ${payload}, ${metadata}, null, ${extra})`
}
const many = (given: (typeof BEYOND)[number][2], type = 'lamp') => {
  const { aggregate, payload, metadata, extra } = { ...NONE, ...given }
  return `select aftercommit.append_many(array['h', 'i'], array['lamp.lit', 'lamp.lit'], array['${type}', '${type}'],
    array['a', ${aggregate}], jsonb_build_array(1, ${payload}), jsonb_build_array(${META}, ${metadata}), null, array[null, ${extra}])`
}

describe.each(SERVERS)('on Postgres $major', ({ major }) => {
  async function opened() {
    const log = await openLog({ major })
    await log.sql.query(`create table kept as select to_jsonb(repeat('x', 1100000)) as content`)
    await log.sql.query(`select aftercommit.declare_stream('stream')`)
    return log
  }
  const refusal = (sql: pg.Client, statement: string) =>
    sql.query(statement).then(
      () => 'taken',
      (error: Error & { code: string }) => error.code,
    )

  it('append refuses what is beyond a limit, one event or many, in a stream or not', async () => {
    const { ac, sql } = await opened()
    for (const [what, code, given] of BEYOND) {
      expect.soft(await refusal(sql, one(given)), `append: ${what}`).toBe(code)
      expect.soft(await refusal(sql, many(given)), `append_many: ${what}`).toBe(code)
      expect.soft(await refusal(sql, many(given, 'stream')), `append_many, stream: ${what}`).toBe(code)
    }
    expect(await ac.log.read()).toEqual([])
  })

  it('emit in SQL refuses them too', async () => {
    const { ac, sql } = await opened()
    for (const [
      what,
      code,
      { aggregate = `'a'`, payload = `'{}'`, metadata = `'{}'`, extra = 'null::jsonb' },
    ] of BEYOND) {
      const statement = `select aftercommit.emit('lamp.lit', 'lamp', ${aggregate}, ${payload}, metadata => ${metadata},
        changes => ${extra} -> 'changes', previous => ${extra} -> 'previous', tenant => ${extra} ->> 'tenant')`
      expect.soft(await refusal(sql, statement), what).toBe(code)
    }
    expect(await ac.log.read()).toEqual([])
  })

  it('a step of a workflow refuses them too', async () => {
    const { ac, sql } = await opened()
    for (const [payload, code] of [
      [large, 'AC005'],
      [nested(65), 'AC016'],
    ] as const) {
      const event = `jsonb_build_object('id', 'i', 'type', 'counter.counted', 'payload', ${payload}, 'metadata', ${META})`
      const step = `jsonb_build_object('type', 'counter', 'id', 'a', 'version', 0, 'events', jsonb_build_array(${event}))`
      const commit = `select aftercommit.workflow_commit(jsonb_build_array(${step}), '[]')`
      expect(await refusal(sql, commit)).toBe(code)
    }
    expect(await ac.log.read()).toEqual([])
  })

  it('what is within the limits is taken, and knows its size', async () => {
    const { sql } = await opened()
    const within = [
      nested(64),
      `to_jsonb(repeat('x', 1000000))`,
      json(`('[' || repeat('0,', 100000) || '1e1000]')`),
      json(`'[1e131000, -1e-16000]'`),
    ]
    for (const payload of within) await sql.query(one({ payload }))
    await sql.query(one({ extra: `jsonb_build_object('changes', jsonb_build_object('x', ${nested(64)}))` }))
    const { rows } = await sql.query(
      `select bytes = octet_length(payload::text) + octet_length(metadata::text) + coalesce(octet_length(changes::text), 0) as right
         from aftercommit.events`,
    )
    expect(rows).toEqual(Array.from({ length: 5 }, () => ({ right: true })))
  })

  it('the limits of the settings count, and the library says what to do', async () => {
    const { ac } = await openLog({ major, log: { maxPayload: '40kB', maxNesting: 80 } })
    await ac.transaction((tx) => tx.emit('lamp.lit', { payload: JSON.parse('['.repeat(80) + ']'.repeat(80)) }))
    // Compact it is smaller than the limit, as Postgres writes it it is not.
    const error = await ac.emitNow('lamp.lit', { payload: Array.from({ length: 20_000 }, () => 1) }).catch((e) => e)
    expect(error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining('40960 bytes') })
  })

  it('a page of the log ends by its weight, and the next one goes on', async () => {
    const { ac, sql } = await opened()
    await sql.query(insert(`'e' || n`, `to_jsonb(repeat('x', 1000000))`, 'from generate_series(1, 25) n'))
    const ids = Array.from({ length: 25 }, (_, n) => `e${n + 1}`)
    const tail = follow(ac.log)
    await tail.sees('e25')
    expect(tail.ids).toEqual(ids)
    expect((await ac.log.read()).map(({ id }) => id)).toEqual(ids)
    expect((await ac.log.list({ limit: 20 })).map(({ id }) => id)).toEqual(ids.slice(5).reverse())
  })
})

const insert = (id: string, payload: string, from = '', type = `'lamp.lit'`) =>
  `insert into aftercommit.events (id, type, payload, metadata, occurred_at) select ${id}, ${type}, ${payload}, '{}', now() ${from}`

it('a subscription passes events that are too large or cannot be read as dead letters, and goes on', async () => {
  const { ac, sql, emit } = await openSubscriptions()
  await sql.query(insert(`'large'`, `to_jsonb(repeat('x', ${LARGEST_EVENT}))`))
  await sql.query(insert(`'deep'`, nested(1_500)))
  await sql.query(
    `insert into aftercommit.events (id, type, payload, changes, metadata, occurred_at)
     values ('deep-changes', 'lamp.lit', '{}', jsonb_build_object('x', ${nested(1_500)}), '{}', now())`,
  )
  const seen = recorder()
  ac.subscribe({ id: 'sub', from: 'start', handle: seen.handle })
  await ac.start()
  await emit('after')
  await seen.sees('after')
  expect(seen.ids).toEqual(['after'])
  const letters = await ac.deadLetters.list()
  expect(letters.map(({ event, error }) => [event.id, error.code]).sort()).toEqual([
    ['deep', 'UNDECODABLE'],
    ['deep-changes', 'UNDECODABLE'],
    ['large', 'UNDECODABLE'],
  ])
  expect(await ac.deadLetters.redrive(letters[0]!.id)).toBeTruthy()
  const stored = await ac.log.get('large')
  expect(stored).toMatchObject({ payload: { reason: expect.stringContaining('16777216') }, changes: null })
})

it('a hook that repeats until it is done passes what cannot be read, and an instance with the log behind it starts', async () => {
  const { ac, sql } = await openHooks()
  await sql.query(insert(`'deep'`, nested(1_500), '', `'auth.logout'`))
  const revocation = revocationHook()
  ac.hooks.add(revocation)
  const { handle, heard } = ear()
  ac.hooks.add({ name: 'ear', types: ['auth.*'], scope: 'instance', untilDone: true, handle })
  await ac.start()
  await sql.query(insert(`'deeper'`, nested(1_500), '', `'auth.logout'`))
  await ac.emitAuth({ type: 'logout', sessionId: 's1' })
  await eventually(() => revocation.isRevoked('s1') && heard.length === 1)
})
