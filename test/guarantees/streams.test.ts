/** Streams: of several writers that expect the same version one succeeds, and versions have no gaps. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../../src/index.ts'
import type { VersionConflictError } from '../../src/log/index.ts'
import { instance, openLog, SERVERS } from '../log/support/open-log.ts'
import { poolOf } from '../log/support/pool-of.ts'
import { sessionsWait } from '../log/support/waiting.ts'
import { connect } from '../support/database.ts'

const order = (id: string) => ({ type: 'order', id })
const events = defineEvents({ 'order.placed': z.object({}), 'order.changed': z.object({}) }, { streams: ['order'] })
const anything = { payload: {} }

describe.each(SERVERS)('streams on Postgres $major', ({ major }) => {
  it('let one of twenty writers with the same expected version through, and tell the others', async () => {
    const { ac, url } = await openLog({ major, events })
    await ac.transaction(async (tx) => {
      for (let n = 0; n < 5; n++) await tx.emit('order.changed', { aggregate: order('1'), ...anything })
    })
    const pool = poolOf(url, 20)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () =>
        ac.emitNow(pool, 'order.changed', { aggregate: order('1'), ...anything, expectedVersion: 5 }),
      ),
    )
    const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(won.map(({ value }) => value.version)).toEqual([6])
    expect(lost).toHaveLength(19)
    for (const { reason } of lost as { reason: VersionConflictError }[]) {
      expect(reason).toMatchObject({ code: 'VERSION_CONFLICT', aggregateId: '1', expected: 5, found: 6 })
    }
    expect((await ac.log.stream(order('1'))).map(({ version }) => version)).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('write nothing of a batch in which one version is not as expected', async () => {
    const { ac } = await openLog({ major, events })
    const batch = ac.transaction((tx) =>
      tx.emit([
        { type: 'order.placed', aggregate: order('1'), ...anything, expectedVersion: 0 },
        { type: 'order.placed', aggregate: order('11'), ...anything, expectedVersion: 0 },
        { type: 'order.changed', aggregate: order('1'), ...anything, expectedVersion: 7 },
      ]),
    )
    await expect(batch).rejects.toMatchObject({ code: 'VERSION_CONFLICT', aggregateId: '1', expected: 7, found: 1 })
    expect(await ac.log.read()).toEqual([])
    const placed = await ac.transaction((tx) => tx.emit('order.placed', { aggregate: order('1'), ...anything }))
    expect(placed.version).toBe(1)
  })

  it('number 1, 2, 3, … without a gap, whoever appends and whoever rolls back', async () => {
    const { ac, url, sql } = await openLog({ major, events })
    const pool = poolOf(url, 10)
    const writers = Array.from({ length: 50 }, async (_, n) => {
      const client = await pool.connect()
      try {
        await client.query('begin')
        if (n % 2) await ac.emit(client, 'order.changed', { aggregate: order('1'), ...anything })
        else await client.query(`select aftercommit.emit('order.changed', 'order', '1', '{}')`)
        await client.query(n % 5 === 0 ? 'rollback' : 'commit')
      } finally {
        client.release()
      }
    })
    await Promise.all(writers)
    const { rows } = await sql.query(
      `select version::int, position from aftercommit.events where aggregate_id = '1' order by position`,
    )
    expect(rows.map(({ version }) => version)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
  })

  it('never deadlock two batches that name the same streams in opposite orders', async () => {
    const { ac, url } = await openLog({ major, events })
    const pool = poolOf(url, 8)
    const ids = Array.from({ length: 12 }, (_, n) => String(n))
    const batch = (order: string[]) =>
      order.map((id) => ({ type: 'order.changed' as const, aggregate: { type: 'order', id }, ...anything }))
    await Promise.all(Array.from({ length: 60 }, (_, n) => ac.emitNow(pool, batch(n % 2 ? ids : ids.toReversed()))))
    for (const id of ids) expect(await ac.log.last({ type: 'order', id })).toMatchObject({ version: 60 })
  })

  it('are obeyed by plain SQL: a declared type gets versions, and order of positions is order of versions', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(`select aftercommit.declare_stream('invoice')`)
    for (let n = 0; n < 3; n++) await sql.query(`select aftercommit.emit('invoice.changed', 'invoice', '7', '{}')`)
    await sql.query(`select aftercommit.emit('parcel.sent', 'parcel', '7', '{}')`)
    expect((await ac.log.read()).map(({ type, version }) => [type, version])).toEqual([
      ['invoice.changed', 1],
      ['invoice.changed', 2],
      ['invoice.changed', 3],
      ['parcel.sent', null],
    ])
  })

  it('are asked for before a version can be expected', async () => {
    const { ac } = await openLog({ major })
    const emitting = ac.transaction((tx) =>
      tx.emit('parcel.sent', { aggregate: { type: 'parcel', id: '1' }, ...anything, expectedVersion: 0 }),
    )
    await expect(emitting).rejects.toMatchObject({ code: 'NOT_A_STREAM', message: expect.stringContaining('"parcel"') })
    await expect(
      ac.transaction((tx) => tx.emit('parcel.sent', { ...anything, expectedVersion: 0 })),
    ).rejects.toMatchObject({ code: 'NOT_A_STREAM' })
    expect(await ac.log.read()).toEqual([])
  })

  it('are refused for a type with plain events, or go on from their number when these are adopted', async () => {
    const { ac, url, sql } = await openLog({ major })
    for (let n = 0; n < 3; n++) await sql.query(`select aftercommit.emit('order.placed', 'order', '1', '{}')`)
    const later = instance({ database: url, events })
    await expect(later.migrate()).rejects.toMatchObject({
      code: 'STREAM_HAS_PLAIN_EVENTS',
      message: expect.stringContaining('"order"'),
    })
    await later.migrate({ adoptStreams: true })
    const first = await later.transaction((tx) => tx.emit('order.changed', { aggregate: order('1'), ...anything }))
    const batch = await later.transaction((tx) =>
      tx.emit([
        { type: 'order.changed', aggregate: order('1'), ...anything, expectedVersion: 4 },
        { type: 'order.placed', aggregate: order('2'), ...anything, expectedVersion: 0 },
      ]),
    )
    expect([first, ...batch].map(({ version }) => version)).toEqual([4, 5, 1])
    expect((await ac.log.stream(order('1'))).map(({ version }) => version)).toEqual([null, null, null, 4, 5])
  })

  it('are declared only when no appender is left that has not heard of it', async () => {
    const { ac, url, sql } = await openLog({ major })
    const plain = await connect(url)
    await plain.query('begin')
    await ac.emit(plain, 'order.placed', { aggregate: order('1'), ...anything })
    await expect(sql.query(`select aftercommit.declare_stream('order')`)).rejects.toMatchObject({ code: '55P03' })
    await plain.query('commit')
    await expect(sql.query(`select aftercommit.declare_stream('order')`)).rejects.toMatchObject({ code: 'AC007' })
  })

  it('number what is appended while they are being declared', async () => {
    const { ac, url, sql } = await openLog({ major })
    await sql.query('begin')
    await sql.query(`select aftercommit.declare_stream('order')`)
    const pool = poolOf(url, 2)
    const one = ac.emitNow(pool, 'order.placed', { aggregate: order('1'), ...anything })
    const many = ac.emitNow(pool, [
      { type: 'order.placed', aggregate: order('2'), ...anything },
      { type: 'order.changed', aggregate: order('2'), ...anything },
    ])
    await sessionsWait(url, 2)
    await sql.query('commit')
    expect([await one, ...(await many)].map(({ version }) => version)).toEqual([1, 1, 2])
  })

  it('are told apart when one name ends like another', async () => {
    const { ac, sql } = await openLog({ major })
    await sql.query(`select aftercommit.declare_stream('order'), aftercommit.declare_stream('back-order')`)
    const emitting = ac.transaction((tx) =>
      tx.emit([
        { type: 'order.placed', aggregate: { type: 'order', id: '1' }, ...anything, expectedVersion: 0 },
        { type: 'order.placed', aggregate: { type: 'back-order', id: '1' }, ...anything, expectedVersion: 3 },
      ]),
    )
    await expect(emitting).rejects.toMatchObject({ aggregateType: 'back-order', expected: 3, found: 0 })
  })

  it('are read from a version, to a version, and at their end', async () => {
    const { ac } = await openLog({ major, events })
    await ac.transaction((tx) =>
      tx.emit(
        Array.from({ length: 10 }, () => ({ type: 'order.changed' as const, aggregate: order('1'), ...anything })),
      ),
    )
    const versions = async (options: Parameters<typeof ac.log.stream>[1]) =>
      (await ac.log.stream(order('1'), options)).map(({ version }) => version)
    expect(await versions({ fromVersion: 8 })).toEqual([8, 9, 10])
    expect(await versions({ toVersion: 2 })).toEqual([1, 2])
    expect(await versions({ fromVersion: 4, toVersion: 6 })).toEqual([4, 5, 6])
    expect(await versions({ fromVersion: 3, limit: 2 })).toEqual([3, 4])
    expect(await versions({ fromVersion: 11 })).toEqual([])
    expect(await ac.log.last(order('1'))).toMatchObject({ version: 10 })
    expect(await ac.log.last(order('none'))).toBeUndefined()
  })
})
