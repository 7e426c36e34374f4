import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, Undecodable } from '../../src/index.ts'
import { connect } from '../support/database.ts'
import { instance, openLog, SERVERS } from './support/open-log.ts'

const positions = (events: readonly { position: bigint }[]) => events.map(({ position }) => Number(position))

describe.each(SERVERS)('reading on Postgres $major', ({ major }) => {
  it('gives what is final and nothing beyond an open appender', async () => {
    const { ac, url } = await openLog({ major })
    const emit = () => ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await emit()
    await ac.log.read()
    const appender = await connect(url)
    await appender.query('begin')
    await ac.emit(appender, 'lamp.lit', { payload: {}, id: 'open' })
    await emit()
    // Without a tailer nobody knows how much more is final, so less is better than too much.
    expect(positions(await ac.log.read())).toEqual([1])
    expect(await ac.log.status()).toMatchObject({ head: 3n, frontier: 1n, holders: [{ state: 'idle in transaction' }] })
    await appender.query('commit')
    expect(positions(await ac.log.read())).toEqual([1, 2, 3])
    expect(await ac.log.status()).toMatchObject({ head: 3n, frontier: 3n, holders: [] })
  })

  it('goes by position, type, tenant and number', async () => {
    const { ac } = await openLog({ major })
    await ac.transaction((tx) =>
      tx.emit([
        { type: 'lamp.lit', payload: {}, tenant: 'home' },
        { type: 'lamp.broken', payload: {} },
        { type: 'lamp.bulb.changed', payload: {}, tenant: 'shop' },
        { type: 'table.laid', payload: {}, tenant: 'home' },
        { type: 'lamp.lit', payload: {}, tenant: 'shop' },
      ]),
    )
    expect(positions(await ac.log.read({ on: ['lamp.*'] }))).toEqual([1, 2, 5])
    expect(positions(await ac.log.read({ on: ['lamp.**'] }))).toEqual([1, 2, 3, 5])
    expect(positions(await ac.log.read({ on: ['table.laid', 'lamp.broken'] }))).toEqual([2, 4])
    expect(positions(await ac.log.read({ tenant: 'home' }))).toEqual([1, 4])
    expect(positions(await ac.log.read({ tenant: 'home', on: ['lamp.*'] }))).toEqual([1])
    expect(positions(await ac.log.read({ from: 2n, limit: 2 }))).toEqual([3, 4])
    expect(positions(await ac.log.read({ from: 'head' }))).toEqual([])
    await expect(ac.log.read({ limit: 0 })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(ac.log.read({ limit: 10_001 })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(ac.log.read({ on: ['Lamp!'] })).rejects.toMatchObject({ code: 'BAD_PATTERN' })
  })

  it('finds the events of an aggregate, plain ones too, and nothing for texts that are SQL', async () => {
    const { ac } = await openLog({ major })
    const aggregate = { type: 'lamp', id: `1' or true --` }
    await ac.transaction(async (tx) => {
      await tx.emit('lamp.lit', { aggregate, payload: {} })
      await tx.emit('lamp.broken', { aggregate, payload: {} })
      await tx.emit('lamp.lit', { aggregate: { type: 'lamp', id: '2' }, payload: {} })
    })
    expect((await ac.log.stream(aggregate)).map(({ type }) => type)).toEqual(['lamp.lit', 'lamp.broken'])
    expect(await ac.log.last(aggregate)).toMatchObject({ type: 'lamp.broken' })
    expect(await ac.log.stream({ type: 'lamp', id: `x' or true --` })).toEqual([])
    expect(await ac.log.get(`' or true --`)).toBeUndefined()
    expect(await ac.log.read({ tenant: `' or true --` })).toEqual([])
  })

  it('gives the first and the last date for times beyond them', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(`set timezone = 'UTC'`)
    for (const time of ['infinity', '-infinity', '4714-11-24 BC', '294276-12-31', '0044-03-15 BC']) {
      await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}', occurred_at => '${time}'::timestamptz)`)
    }
    const times = (await ac.log.read()).map(({ occurredAt }) => occurredAt)
    expect(times).toEqual([
      new Date(8.64e15),
      new Date(-8.64e15),
      new Date('-004713-11-24T00:00:00Z'),
      new Date(8.64e15),
      new Date('-000043-03-15T00:00:00Z'),
    ])
  })

  it('still gives an event whose JSON cannot be read, and says why in its place', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(
      `insert into aftercommit.events (id, type, payload, metadata, occurred_at)
       values ('deep', 'lamp.lit', (repeat('[', 2000) || repeat(']', 2000))::jsonb, '{}', now())`,
    )
    const [event] = await ac.log.read()
    expect(event?.id).toBe('deep')
    expect(event?.payload).toBeInstanceOf(Undecodable)
    expect(event).toMatchObject({ payload: { reason: expect.stringMatching(/deep|nest/i) } })
  })
})

describe('older payloads', () => {
  const first = defineEvents({ 'lamp.lit': z.object({ watt: z.number() }) })
  const second = defineEvents({
    'lamp.lit': {
      version: 2,
      schema: z.object({ watts: z.number() }),
      upcast: { 1: (old: { watt: number }) => ({ watts: old.watt }) },
    },
  })

  it('are lifted wherever they are read, and the newest are as they are', async () => {
    const { ac, url } = await openLog({ events: first })
    const aggregate = { type: 'lamp', id: '1' }
    const old = await ac.transaction((tx) => tx.emit('lamp.lit', { aggregate, payload: { watt: 40 } }))
    const later = instance({ database: url, events: second })
    await later.transaction((tx) =>
      tx.emit('lamp.lit', { aggregate, payload: { watts: 60 }, metadata: { correlationId: old.id } }),
    )
    const lifted = [{ watts: 40 }, { watts: 60 }]
    const payloads = (events: readonly { payload: unknown }[]) => events.map(({ payload }) => payload)
    expect(payloads(await later.log.read())).toEqual(lifted)
    expect(payloads(await later.log.stream(aggregate))).toEqual(lifted)
    expect(payloads(await later.log.correlated(old.id))).toEqual(lifted)
    expect(await later.log.get(old.id)).toMatchObject({ payload: lifted[0], metadata: { schemaVersion: 2 } })
    const tailed: unknown[] = []
    for await (const event of later.log.tail({ from: 'start' })) {
      tailed.push(event.payload)
      if (tailed.length === 2) break
    }
    expect(tailed).toEqual(lifted)
  })

  it('that cannot be read are not lifted into something else', async () => {
    const { ac, sql } = await openLog({ events: second })
    await sql.query(
      `insert into aftercommit.events (id, type, payload, metadata, occurred_at)
       values ('deep', 'lamp.lit', (repeat('[', 2000) || repeat(']', 2000))::jsonb, '{}', now())`,
    )
    const [event] = await ac.log.read()
    expect(event?.payload).toBeInstanceOf(Undecodable)
  })

  it('of a version that this process does not know are not guessed at', async () => {
    const { ac, url } = await openLog({ events: second })
    await ac.transaction((tx) => tx.emit('lamp.lit', { payload: { watts: 60 } }))
    const older = instance({ database: url, events: first })
    await expect(older.log.read()).rejects.toMatchObject({ code: 'SCHEMA_VERSION_TOO_NEW', found: 2, known: 1 })
  })
})
