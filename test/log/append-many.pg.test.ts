/** Many events in one statement: versions, conflicts and answers are those of one append after the other. */
import { describe, expect, it } from 'vitest'
import type { EmitRequest } from '../../src/log/index.ts'
import { openLog, SERVERS } from './support/open-log.ts'

const lit = (id: string, more: Partial<EmitRequest> = {}): EmitRequest => ({
  type: 'lamp.lit',
  aggregate: { type: 'lamp', id },
  payload: {},
  ...more,
})

async function lamps(major: 18 | 14) {
  const opened = await openLog({ major })
  await opened.sql.query(`select aftercommit.declare_stream('lamp')`)
  const emit = (events: EmitRequest[]) => opened.ac.transaction((tx) => tx.emit(events))
  return { ...opened, emit }
}

describe.each(SERVERS)('on Postgres $major', ({ major }) => {
  it('a batch updates the row of each stream once, whatever the number of its events', async () => {
    const { ac } = await lamps(major)
    const updates = await ac.transaction(async (tx) => {
      await tx.emit(Array.from({ length: 200 }, (_, n) => lit(String(n % 2))))
      const { rows } = await tx.query<{ updates: number }>(
        `select n_tup_upd::integer as updates from pg_stat_xact_user_tables where relid = 'aftercommit.streams'::regclass`,
      )
      return rows[0]!.updates
    })
    expect(updates).toBe(2)
    const versions = (await ac.log.stream({ type: 'lamp', id: '1' })).map(({ version }) => version)
    expect(versions).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
  })

  it('events of several streams and of none keep the order in which they were given', async () => {
    const { ac, emit } = await lamps(major)
    await emit([lit('a'), lit('a')])
    const plain = lit('x', { aggregate: { type: 'switch', id: 'x' }, tenant: 't', changes: { on: { old: 0, new: 1 } } })
    const emitted = await emit([
      lit('b'),
      plain,
      lit('a', { expectedVersion: 2 }),
      lit('b'),
      lit('a', { expectedVersion: 3 }),
    ])
    expect(emitted.map(({ position, version }) => [Number(position), version])).toEqual([
      [3, 1],
      [4, null],
      [5, 3],
      [6, 2],
      [7, 4],
    ])
    const stored = await ac.log.read({ from: 2n })
    expect(stored.map(({ id }) => id)).toEqual(emitted.map(({ id }) => id))
    expect(stored[1]).toMatchObject({ tenant: 't', changes: { on: { old: 0, new: 1 } }, version: null })
  })

  it('a conflict names the version that the stream has within the batch, and nothing is written', async () => {
    const { ac, emit } = await lamps(major)
    await emit([lit('a'), lit('a')])
    await expect(emit([lit('a'), lit('a', { expectedVersion: 2 })])).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
      expected: 2,
      found: 3,
    })
    const plain = lit('x', { aggregate: { type: 'switch', id: 'x' }, expectedVersion: 0 })
    await expect(emit([lit('a'), plain])).rejects.toMatchObject({ code: 'NOT_A_STREAM' })
    expect(await ac.log.read()).toHaveLength(2)
    expect((await emit([lit('a'), lit('a')])).map(({ version }) => version)).toEqual([3, 4])
  })

  it('batches that meet in one stream number its events without a gap', async () => {
    const { ac, emit } = await lamps(major)
    const batches = Array.from({ length: 12 }, () => Array.from({ length: 20 }, (_, n) => lit(String(n % 3))))
    await Promise.all(batches.map(emit))
    const events = await ac.log.read({ limit: 1_000 })
    for (const id of ['0', '1', '2']) {
      const versions = events.filter(({ aggregateId }) => aggregateId === id).map(({ version }) => version)
      expect(versions).toEqual(versions.map((_, n) => n + 1))
    }
    expect(events).toHaveLength(240)
  })
})
