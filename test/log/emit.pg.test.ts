import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, ExactNumber, runWithCause } from '../../src/index.ts'
import type { EmitInput } from '../../src/log/index.ts'
import type { Logger } from '../../src/runtime/index.ts'
import { LIBRARIES } from '../postgres/client-libraries.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { follow, instance, openLog, SERVERS } from './support/open-log.ts'

const nested = (depth: number): unknown => (depth === 0 ? 1 : { in: nested(depth - 1) })
const events = defineEvents({ 'lamp.lit': z.object({ watts: z.number() }).loose() })

describe('what cannot be kept is refused before anything is sent', () => {
  const refusals: [string, string, string, Partial<EmitInput> & Record<string, unknown>][] = [
    ['U+0000 in a value', 'BAD_JSON', 'lamp.lit', { payload: { watts: 1, note: 'a\0b' } }],
    ['U+0000 in a key', 'BAD_JSON', 'lamp.lit', { payload: { watts: 1, 'a\0b': 1 } }],
    ['half a surrogate pair in a value', 'BAD_JSON', 'lamp.lit', { payload: { watts: 1, note: '\ud800' } }],
    ['half a surrogate pair in a key', 'BAD_JSON', 'lamp.lit', { payload: { watts: 1, '\udc00': 1 } }],
    ['NaN', 'BAD_JSON', 'lamp.lit', { payload: { watts: 1, x: Number.NaN } }],
    ['infinity', 'BAD_JSON', 'lamp.lit', { payload: { watts: 1, x: Number.POSITIVE_INFINITY } }],
    ['nesting that is too deep', 'PAYLOAD_TOO_DEEP', 'lamp.lit', { payload: { watts: 1, x: nested(70) } }],
    ['a payload that is too large', 'PAYLOAD_TOO_LARGE', 'lamp.lit', { payload: { watts: 1, x: 'x'.repeat(3_000) } }],
    ['a payload that does not fit its schema', 'INVALID_PAYLOAD', 'lamp.lit', { payload: { watts: 'many' } }],
    ['a type that is not defined', 'UNKNOWN_EVENT', 'lamp.litt', {}],
    ['a type that is no name', 'BAD_EVENT_NAME', 'Lamp Lit', {}],
    ['an empty id', 'BAD_EVENT', 'lamp.lit', { id: '' }],
    ['an id that is too long', 'BAD_EVENT', 'lamp.lit', { id: 'x'.repeat(256) }],
    ['an id with a control character', 'BAD_EVENT', 'lamp.lit', { id: 'a\nb' }],
    ['an id that is a number', 'BAD_EVENT', 'lamp.lit', { id: 7 as never }],
    ['an aggregate without an id', 'BAD_EVENT', 'lamp.lit', { aggregate: { type: 'lamp', id: '' } }],
    ['an aggregate with U+0000', 'BAD_EVENT', 'lamp.lit', { aggregate: { type: 'lamp', id: '\0' } }],
    ['a tenant that is too long', 'BAD_EVENT', 'lamp.lit', { tenant: 'x'.repeat(256) }],
    ['a time that is none', 'BAD_EVENT', 'lamp.lit', { occurredAt: new Date(Number.NaN) }],
    ['a time before those that Postgres knows', 'BAD_EVENT', 'lamp.lit', { occurredAt: new Date(-8.64e15) }],
    ['a version below 0', 'BAD_EVENT', 'lamp.lit', { expectedVersion: -1 }],
    ['metadata spelt as it is stored', 'BAD_EVENT', 'lamp.lit', { metadata: { user_id: 'u' } }],
    ['U+0000 in metadata', 'BAD_JSON', 'lamp.lit', { metadata: { note: '\0' } }],
    ['U+0000 in changes', 'BAD_JSON', 'lamp.lit', { changes: { name: { old: '\0', new: '' } } }],
    ['an event behind too many causes', 'TOO_DEEP', 'lamp.lit', { metadata: { depth: 33 } }],
  ]

  it('and the transaction goes on as if it had not been asked', async () => {
    const { ac } = await openLog({ events, log: { maxPayload: '2kB' } })
    const emit = ac.emit as (db: unknown, first: unknown, event?: unknown) => Promise<unknown>
    for (const [what, code, type, event] of refusals) {
      const good = { payload: { watts: 60 }, id: `after ${what}` }
      await ac.transaction(async (tx) => {
        const bad = { payload: { watts: 1 }, ...event }
        await expect(emit(tx, type, bad), what).rejects.toMatchObject({ code })
        await expect(
          emit(tx, [
            { type: 'lamp.lit', ...good },
            { type, ...bad },
          ]),
          what,
        ).rejects.toMatchObject({ code })
        await tx.emit('lamp.lit', good)
      })
    }
    const kept = await ac.log.read({ limit: 1_000 })
    expect(kept.map(({ id }) => id)).toEqual(refusals.map(([what]) => `after ${what}`))
  })

  it('and its words never repeat the payload', async () => {
    const { ac } = await openLog({ events, log: { maxPayload: '2kB' } })
    const emit = ac.emit as (db: unknown, type: string, event: unknown) => Promise<unknown>
    await ac.transaction(async (tx) => {
      for (const [, , type, event] of refusals) {
        const payload = { ...(event.payload as object | undefined), watts: 1, token: 'canary-1' }
        const error = await emit(tx, type, { ...event, payload }).catch((thrown: Error) => thrown)
        expect(String(error)).not.toContain('canary-1')
      }
    })
  })
})

describe('an event is kept', () => {
  it('with everything it was given', async () => {
    const { ac } = await openLog()
    const occurredAt = new Date('2020-02-29T12:34:56.789Z')
    const emitted = await ac.transaction((tx) =>
      tx.emit('lamp.moved', {
        aggregate: { type: 'lamp', id: 'ü/1' },
        payload: { to: 'hall', '': null, list: [1, 'a', true] },
        changes: { room: { old: 'attic', new: 'hall' } },
        previous: { room: 'attic' },
        tenant: 'home',
        metadata: { userId: 'u-1', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', mine: [1] },
        occurredAt,
      }),
    )
    const event = await ac.log.get(emitted.id)
    expect(event).toMatchObject({
      id: emitted.id,
      position: emitted.position,
      type: 'lamp.moved',
      aggregateType: 'lamp',
      aggregateId: 'ü/1',
      version: null,
      tenant: 'home',
      occurredAt,
      traceId: '0af7651916cd43dd8448eb211c80319c',
    })
    expect(event?.payload).toEqual({ to: 'hall', '': null, list: [1, 'a', true] })
    expect(event?.changes).toEqual({ room: { old: 'attic', new: 'hall' } })
    expect(event?.previous).toEqual({ room: 'attic' })
    expect(event?.metadata).toMatchObject({ userId: 'u-1', correlationId: emitted.id, causationId: null, mine: [1] })
  })

  it('with its numbers as they are and keys that other objects have', async () => {
    const { ac } = await openLog()
    const payload = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": 2}')
    const numbers = { large: 9007199254740993n, exact: new ExactNumber('0.1234567890123456789012345678901') }
    const { id } = await ac.transaction((tx) => tx.emit('lamp.counted', { payload: { ...numbers, keys: payload } }))
    const event = await ac.log.get(id)
    expect(event?.payload).toMatchObject(numbers)
    const kept = event?.payload as { keys: object } | undefined
    expect(JSON.stringify(kept?.keys)).toContain('"__proto__":{"polluted":true}')
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('at the time of the database, unless told, and at any time that Postgres knows', async () => {
    const { ac, sql } = await openLog()
    const at = async (occurredAt?: Date) => {
      const { id } = await ac
        .transaction((tx) =>
          tx.emit([
            { type: 'lamp.lit', payload: {} },
            { type: 'lamp.lit', payload: {}, occurredAt },
          ]),
        )
        .then((both) => both[1]!)
      return (await ac.log.get(id))!.occurredAt
    }
    const { rows } = await sql.query('select clock_timestamp() as now')
    expect((await at()).getTime()).toBeGreaterThanOrEqual(rows[0].now.getTime())
    const times = [
      '-004713-11-24T00:00:00.000Z',
      '-000001-06-01T12:00:00.500Z',
      '+000000-02-29T00:00:00.000Z',
      '0001-01-01T00:00:00.000Z',
      '+012345-06-07T08:09:10.011Z',
      '+275760-09-13T00:00:00.000Z',
    ]
    for (const time of times.map((text) => new Date(text))) {
      expect(await at(time)).toEqual(time)
      const { id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {}, occurredAt: time }))
      expect((await ac.log.get(id))?.occurredAt).toEqual(time)
    }
  })

  it('many at a time in the order given, whatever their texts hold', async () => {
    const { ac } = await openLog()
    const texts = ['plain', 'with "quotes"', 'back\\slash', '{braces}', 'com,ma', 'NULL', ' ', '\t\n', '𝄞', "'"]
    const many = texts.map((text) => ({
      type: 'note.written',
      aggregate: { type: text, id: text },
      payload: { text },
      id: `note ${texts.indexOf(text)}`,
    }))
    const emitted = await ac.transaction((tx) => tx.emit(many))
    const read = await ac.log.read()
    expect(read.map(({ position }) => position)).toEqual(emitted.map(({ position }) => position))
    expect(read.map(({ aggregateId }) => aggregateId)).toEqual(texts)
    expect(read.map(({ payload }) => payload)).toEqual(texts.map((text) => ({ text })))
    expect(await ac.transaction((tx) => tx.emit([]))).toEqual([])
  })
})

describe('causes', () => {
  it('begin with an event of its own accord, and are handed down to what is emitted while it is handled', async () => {
    const { ac } = await openLog()
    const first = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    const cause = { correlationId: first.id, causationId: first.id, depth: 3, userId: 'u-1', tenant: 'home' }
    const second = await runWithCause(cause, () => ac.transaction((tx) => tx.emit('lamp.warmed', { payload: {} })))
    const third = await runWithCause(cause, () =>
      ac.transaction((tx) =>
        tx.emit('lamp.warmed', {
          payload: {},
          tenant: 'shop',
          metadata: { correlationId: 'mine', causationId: 'other', userId: null },
        }),
      ),
    )
    const metadata = async ({ id }: { id: string }) => {
      const event = (await ac.log.get(id))!
      return { ...event.metadata, tenant: event.tenant }
    }
    expect(await metadata(first)).toMatchObject({ correlationId: first.id, causationId: null, depth: 0, userId: null })
    expect(await metadata(second)).toMatchObject({
      correlationId: first.id,
      causationId: first.id,
      depth: 4,
      userId: 'u-1',
      tenant: 'home',
    })
    expect(await metadata(third)).toMatchObject({
      correlationId: 'mine',
      causationId: 'other',
      depth: 4,
      userId: null,
      tenant: 'shop',
    })
  })

  it('end where an event would cause itself for ever', async () => {
    const { ac } = await openLog({ log: { maxDepth: 3 } })
    const emitAt = (depth: number) =>
      runWithCause({ correlationId: 'c', causationId: 'e', depth }, () =>
        ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} })),
      )
    await emitAt(2)
    await expect(emitAt(3)).rejects.toMatchObject({ code: 'TOO_DEEP' })
  })
})

describe.each(SERVERS)('aftercommit.emit in SQL on Postgres $major', ({ major }) => {
  it('takes who, why and for whom from the session, where an empty setting is none', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(`begin;
      set local aftercommit.user_id = 'u-1'; set local aftercommit.correlation_id = 'c-1';
      set local aftercommit.causation_id = 'e-1'; set local aftercommit.tenant = 'home'; set local aftercommit.depth = '2';
      select aftercommit.emit('lamp.lit', 'lamp', '1', '{"watts": 60}');
      select aftercommit.emit('lamp.lit', null, null, null, changes => '{"a": {"old": 1, "new": 2}}',
        metadata => '{"user_id": "u-2", "mine": true}', occurred_at => '2020-01-01T00:00:00Z');
      commit;
      set aftercommit.user_id = ''; set aftercommit.correlation_id = ''; set aftercommit.tenant = ''; set aftercommit.depth = '';
      select aftercommit.emit('lamp.lit', null, null, '[1]')`)
    const [first, second, third] = await ac.log.read()
    expect(first).toMatchObject({ aggregateType: 'lamp', aggregateId: '1', tenant: 'home', payload: { watts: 60 } })
    expect(first?.metadata).toMatchObject({ userId: 'u-1', correlationId: 'c-1', causationId: 'e-1', depth: 2 })
    expect(second?.metadata).toMatchObject({ userId: 'u-2', correlationId: 'c-1', depth: 2, mine: true })
    expect(second).toMatchObject({ payload: null, changes: { a: { old: 1, new: 2 } }, aggregateType: null })
    expect(second?.occurredAt).toEqual(new Date('2020-01-01T00:00:00Z'))
    expect(third).toMatchObject({ tenant: null, payload: [1] })
    expect(third?.metadata).toMatchObject({ userId: null, correlationId: third?.id, causationId: null, depth: 0 })
  })

  it('keeps the image before a change, and a tenant that wins over the one of the session', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(`set aftercommit.tenant = 'home';
      select aftercommit.emit('lamp.moved', 'lamp', '1', '{"room": "hall"}', previous => '{"room": "attic"}', tenant => 'work');
      select aftercommit.emit('lamp.moved', 'lamp', '1', '{}', previous => 'null', tenant => '')`)
    const [first, second] = await ac.log.read()
    expect(first).toMatchObject({ tenant: 'work', previous: { room: 'attic' }, payload: { room: 'hall' } })
    expect(second).toMatchObject({ tenant: 'home', previous: null })
  })

  it('weighs what it keeps, also of events that were written past it', async () => {
    const { ac, sql } = await openLog({ major })
    await ac.transaction((tx) => tx.emit('lamp.lit', { payload: { note: 'é' }, changes: { a: { old: 1, new: 2 } } }))
    await sql.query(`insert into aftercommit.events (id, type, payload, metadata, occurred_at)
      values ('by hand', 'lamp.lit', '[1, 2]', '{}', now())`)
    const { rows } = await sql.query(
      `select bytes, octet_length(concat(payload, changes, previous, metadata)) as weighed from aftercommit.events order by position`,
    )
    expect(rows.map(({ bytes }) => bytes)).toEqual(rows.map(({ weighed }) => weighed))
    expect(rows[1].bytes).toBe('[1, 2]{}'.length)
  })

  it('makes ids that begin with the time', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 50)`)
    const ids = (await ac.log.read()).map(({ id }) => id)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Math.abs(Number.parseInt(ids[0]!.replace('-', '').slice(0, 12), 16) - Date.now())).toBeLessThan(600_000)
    expect(new Set(ids).size).toBe(50)
  })

  it('writes the same event by the short way and by the way of events with extras', async () => {
    const { sql } = await openLog({ major, events: defineEvents({ 'lamp.lit': z.any() }, { streams: ['stream'] }) })
    for (const aggregate of [`null, null`, `'lamp', 'l1'`, `'stream', 's1'`]) {
      for (const payload of ['null', `'{"watts": 60}'`]) {
        const both = ['', `, metadata => '{}'`].map((rest) =>
          sql.query(
            `select aftercommit.emit('lamp.lit', ${aggregate}, ${payload}, occurred_at => '2026-01-01'${rest})`,
          ),
        )
        await Promise.all(both)
      }
    }
    const { rows } = await sql.query(
      `select type, aggregate_type, aggregate_id, tenant, payload::text, changes, previous, occurred_at,
              metadata - 'correlation_id' - 'depth' as metadata, metadata ->> 'correlation_id' = id as chain,
              coalesce(metadata ->> 'depth', '0') as depth, version - row_number() over (partition by aggregate_type order by position) as versions
         from aftercommit.events order by position`,
    )
    const short = rows.filter((_, n) => n % 2 === 0)
    expect(short).toHaveLength(6)
    expect(short).toEqual(rows.filter((_, n) => n % 2 === 1))
    expect(short[0]).toMatchObject({ metadata: {}, chain: true, depth: '0' })
  })

  it('refuses what the library refuses, with a state of its own', async () => {
    const { ac, sql } = await openLog({ major, log: { maxPayload: '20kB', maxDepth: 3 } })
    const refusals: [string, string][] = [
      ['AC003', `select aftercommit.emit('Lamp Lit', null, null, '{}')`],
      ['AC003', `select aftercommit.emit(null, null, null, '{}')`],
      ['AC003', `select aftercommit.emit(repeat('a', 201), null, null, '{}')`],
      ['AC004', `select aftercommit.emit('lamp.lit', 'lamp', null, '{}')`],
      ['AC004', `select aftercommit.emit('lamp.lit', '', '', '{}')`],
      ['AC004', `select aftercommit.emit('lamp.lit', null, null, '{}', id => '')`],
      ['AC004', `select aftercommit.emit('lamp.lit', null, null, '{}', id => repeat('x', 256))`],
      ['AC004', `select aftercommit.emit('lamp.lit', null, null, '{}', metadata => '[]')`],
      ['AC004', `select aftercommit.emit('lamp.lit', null, null, '{}', tenant => repeat('x', 256))`],
      ['AC004', `select aftercommit.emit('lamp.lit', null, null, '{}', previous => '[]')`],
      ['AC005', `select aftercommit.emit('lamp.lit', null, null, to_jsonb(repeat('canary', 5000)))`],
      ['AC006', `select aftercommit.emit('lamp.lit', null, null, '{}', metadata => '{"depth": 4}')`],
    ]
    for (const [code, statement] of refusals) {
      const error = await sql.query(statement).catch((thrown: Error & { code: string }) => thrown)
      expect(error, statement).toMatchObject({ code })
      expect(JSON.stringify(error)).not.toContain('canary')
    }
    expect(await ac.log.read()).toEqual([])
  })
})

describe('somebody else’s transaction', () => {
  const libraries = Object.keys(LIBRARIES).filter((name) => name !== 'Prisma')

  it.each(libraries)('of %s: events and data are committed or rolled back together', async (name) => {
    const { ac, url, sql } = await openLog()
    const library = await LIBRARIES[name]!(url)
    try {
      await library.transaction(async (tx) => {
        await ac.emit(tx, 'lamp.lit', { payload: { text: `it's "quoted" \\ ü` }, id: 'one' })
        await ac.emit(tx, [
          { type: 'lamp.lit', payload: {}, id: 'two', tenant: 'home' },
          { type: 'lamp.lit', payload: {}, id: 'three', occurredAt: new Date(0) },
        ])
      })
      const rolledBack = library.transaction(async (tx) => {
        await ac.emit(tx, 'lamp.lit', { payload: {}, id: 'four' })
        throw new Error('no')
      })
      await expect(rolledBack).rejects.toThrow('no')
      await ac.emitNow(library.plain, 'lamp.lit', { payload: {}, id: 'five' })
    } finally {
      await library.close()
    }
    const { rows } = await sql.query('select id from aftercommit.events order by position')
    expect(rows.map(({ id }) => id)).toEqual(['one', 'two', 'three', 'five'])
    expect((await ac.log.get('one'))?.payload).toEqual({ text: `it's "quoted" \\ ü` })
    expect((await ac.log.get('three'))?.occurredAt).toEqual(new Date(0))
  })

  it('of another database is refused', async () => {
    const { ac } = await openLog()
    const elsewhere = await openLog()
    await expect(ac.emitNow(elsewhere.sql, 'lamp.lit', { payload: {} })).rejects.toMatchObject({
      code: 'OTHER_DATABASE',
    })
    expect(await elsewhere.ac.log.read()).toEqual([])
  })

  it('is no transaction of anybody when it is something else', async () => {
    const { ac } = await openLog()
    for (const given of [{}, undefined, 'lamp.lit'] as never[]) {
      await expect(ac.emit(given, 'lamp.lit', { payload: {} })).rejects.toMatchObject({
        code: 'NOT_A_TRANSACTION',
        message: expect.stringMatching(
          /of pg the client that ran BEGIN, .*or call ac\.emitNow\(\) to commit at once\.$/,
        ),
      })
    }
  })
})

it('says that the log is not installed', async () => {
  const { url } = await testDatabase()
  const ac = instance({ database: url })
  await expect(ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))).rejects.toMatchObject({
    code: 'SCHEMA_TOO_OLD',
  })
})

it('no line of a log, however talkative, holds a payload', async () => {
  const written: string[] = []
  const write = (fields: object, message: string) => void written.push(`${inspectAll(fields)} ${message}`)
  const logger: Logger = { debug: write, info: write, warn: write, error: write, child: () => logger }
  const { url } = await openLog()
  const ac = instance({ database: url, logger, log: { maxPayload: '1kB' } })
  const reader = follow(ac.log)
  const canary = { secret: 'canary-7', password: 'canary-7' }
  const { id } = await ac.transaction((tx) =>
    tx.emit('lamp.lit', { payload: canary, changes: { secret: { old: 'canary-7', new: '' } }, previous: canary }),
  )
  await reader.sees(id)
  await ac.transaction((tx) => tx.emit('lamp.lit', { payload: { ...canary, x: 'x'.repeat(2_000) } })).catch(() => {})
  await ac.transaction((tx) => tx.emit('lamp.lit', { payload: { ...canary, y: Number.NaN } })).catch(() => {})
  const sql = await connect(url)
  await sql.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like 'aftercommit:%'`)
  const again = await eventually(() => ac.transaction((tx) => tx.emit('lamp.lit', { payload: canary })))
  await reader.sees(again.id)
  await ac.stop()
  expect(written.length).toBeGreaterThan(3)
  expect(written.filter((line) => line.includes('canary'))).toEqual([])
})

/** Everything reachable, getters and symbols included. */
function inspectAll(value: unknown): string {
  return JSON.stringify(value, (_, inner) => (inner instanceof Error ? { ...inner, text: inner.stack } : inner)) ?? ''
}
