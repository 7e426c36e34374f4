import { describe, expect, it } from 'vitest'
import { findStart, type StartPoint } from '../../src/log/start-point.ts'
import { openDatabase } from '../support/database.ts'
import { follow, openLog } from './support/open-log.ts'

describe('where a reader begins', () => {
  it('is the oldest event, what is final now, or above a position', async () => {
    const { url } = await openLog()
    const db = openDatabase({ database: url })
    expect(await findStart(db, 'start', 7n)).toEqual({ after: 0n })
    expect(await findStart(db, 'head', 7n)).toEqual({ after: 7n })
    expect(await findStart(db, 3n, 7n)).toEqual({ after: 3n })
  })

  it.each([-1n, 3, '5', null, {}, new Date(Number.NaN), 'tail'])('is not %s', async (from) => {
    const { ac } = await openLog()
    await expect(ac.log.read({ from: from as StartPoint })).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })
})

describe('a time', () => {
  const at = (minute: number) => new Date(Date.UTC(2025, 0, 1, 0, minute))

  it('is found whatever holes are in the log, and also where recorded times are not quite in order', async () => {
    const { ac, sql } = await openLog()
    // 300 events, two minutes apart, every third rolled back; a pair in the middle recorded the other way round.
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 300)`)
    await sql.query(`delete from aftercommit.events where position % 3 = 0`)
    await sql.query(`update aftercommit.events
      set recorded_at = '2025-01-01T00:00:00Z'::timestamptz + position * interval '2 minutes'`)
    await sql.query(
      `update aftercommit.events set recorded_at = recorded_at + interval '2 minutes 30 seconds' where position = 100`,
    )
    const first = async (minute: number) => (await ac.log.read({ from: at(minute), limit: 1 }))[0]?.position
    expect(await first(-10)).toBe(1n)
    expect(await first(0)).toBe(1n)
    expect(await first(2)).toBe(1n)
    expect(await first(3)).toBe(2n)
    expect(await first(5)).toBe(4n)
    expect(await first(599)).toBeUndefined()
    expect(await first(598)).toBe(299n)
    // 100 was recorded at minute 202.5, after 101 at 202.
    const around = await ac.log.read({ from: at(202), limit: 3 })
    expect(around.map(({ position }) => position)).toEqual([100n, 101n, 103n])
  })

  it('takes a handful of questions, however long the log', async () => {
    const { sql, url } = await openLog()
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 5000)`)
    await sql.query(`update aftercommit.events
      set recorded_at = '2025-01-01T00:00:00Z'::timestamptz + position * interval '1 minute'`)
    const db = openDatabase({ database: url })
    let questions = 0
    const query: typeof db.query = (text, values) => {
      questions++
      return db.query(text, values)
    }
    const { after } = await findStart({ ...db, query }, at(2_500), 5_000n)
    expect(after).toBeGreaterThan(2_490n)
    expect(after).toBeLessThan(2_500n)
    expect(questions).toBeLessThan(16)
  })

  it('before and after everything that Postgres can tell is everything and nothing', async () => {
    const { ac } = await openLog()
    const { id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    expect(await ac.log.read({ from: new Date(-8.64e15) })).toHaveLength(1)
    expect(await ac.log.read({ from: new Date('-000100-01-01T00:00:00Z') })).toHaveLength(1)
    expect(await ac.log.read({ from: new Date(8.64e15) })).toEqual([])
    const reader = follow(ac.log, { from: new Date(0) })
    await reader.sees(id)
  })
})
