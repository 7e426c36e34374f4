import { describe, expect, it } from 'vitest'
import { testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { follow, instance, openLog, SERVERS } from './support/open-log.ts'

const positions = (events: readonly { position: bigint }[]) => events.map(({ position }) => Number(position))

describe.each(SERVERS)('following on Postgres $major', ({ major }) => {
  it('gives what was there and then what comes, by type and tenant', async () => {
    const { ac } = await openLog({ major })
    const batch = [
      { type: 'lamp.lit', payload: {}, tenant: 'home' },
      { type: 'table.laid', payload: {}, tenant: 'home' },
      { type: 'lamp.lit', payload: {} },
    ]
    await ac.transaction((tx) => tx.emit(batch))
    const everything = follow(ac.log)
    const lamps = follow(ac.log, { on: ['lamp.*'] })
    const home = follow(ac.log, { tenant: 'home' })
    const late = follow(ac.log, { from: 2n })
    await everything.sees((await ac.log.read()).at(-1)!.id)
    await ac.transaction((tx) => tx.emit(batch))
    const last = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {}, tenant: 'home' }))
    for (const reader of [everything, lamps, home, late]) await reader.sees(last.id)
    expect(positions(everything.events)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(positions(lamps.events)).toEqual([1, 3, 4, 6, 7])
    expect(positions(home.events)).toEqual([1, 2, 4, 5, 7])
    expect(positions(late.events)).toEqual([3, 4, 5, 6, 7])
  })

  it('begins at the head unless told, which is what is final then', async () => {
    const { ac } = await openLog({ major })
    await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await ac.start()
    await eventually(async () => (await ac.log.status()).frontier === 1n)
    const tail = ac.log.tail()
    const next = tail.next()
    // The generator is at its wait once the first question was answered; an event from now on is a new one.
    const second = follow(ac.log, { from: 0n })
    await eventually(() => second.events.length === 1)
    await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    expect((await next).value).toMatchObject({ position: 2n })
    await tail.return?.()
  })

  it('gives a slow reader everything, though memory keeps only the newest', async () => {
    const { ac, sql } = await openLog({ major })
    const tail = ac.log.tail({ from: 'start' })
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}')`)
    const seen = [(await tail.next()).value!.position]
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(2, 5000)`)
    await eventually(async () => (await ac.log.status()).frontier === 5_000n)
    while (seen.length < 5_000) seen.push((await tail.next()).value!.position)
    expect(seen).toEqual(Array.from({ length: 5_000 }, (_, n) => BigInt(n + 1)))
    await tail.return?.()
  })

  it('is one tailer and one LISTEN session, however many readers', async () => {
    const { ac, sql } = await openLog({ major })
    const readers = Array.from({ length: 20 }, () => follow(ac.log))
    const { id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await Promise.all(readers.map((reader) => reader.sees(id)))
    expect((await sql.query('select from aftercommit.processes')).rowCount).toBe(1)
    // Reading does not wait for the session that listens.
    const sessions = await eventually(async () => {
      const { rowCount } = await sql.query(
        `select from pg_stat_activity where datname = current_database() and application_name like 'aftercommit:listen %'`,
      )
      return rowCount
    })
    expect(sessions).toBe(1)
  })
})

describe('the end of following', () => {
  it('comes with its signal, before, while and after it waits', async () => {
    const { ac } = await openLog()
    const over = new AbortController()
    over.abort()
    for await (const _ of ac.log.tail({ from: 'start', signal: over.signal })) expect.unreachable()

    const reader = follow(ac.log)
    const { id } = await ac.transaction((tx) => tx.emit('lamp.lit', { payload: {} }))
    await reader.sees(id)
    await reader.stop()
    await reader.ended
  })

  it('comes when the instance is stopped, quietly, also for a reader that is far behind', async () => {
    const { ac, sql } = await openLog()
    await sql.query(`select aftercommit.emit('lamp.lit', null, null, '{}') from generate_series(1, 5000)`)
    const waiting = follow(ac.log)
    await eventually(() => waiting.events.length === 5_000)
    const behind = ac.log.tail({ from: 'start' })
    await behind.next()
    await ac.stop()
    await waiting.ended
    let rest = 0
    for await (const _ of behind) rest++
    expect(rest).toBeLessThan(5_000)
    expect((await sql.query('select from aftercommit.processes')).rowCount).toBe(0)
    expect((await sql.query('select from aftercommit.idle_marks')).rowCount).toBe(0)
    await ac.stop()
    await expect(ac.log.tail().next()).rejects.toMatchObject({ code: 'STOPPED' })
  })

  it('is a refusal where the log is not installed, or is named wrongly', async () => {
    const { url } = await testDatabase()
    const ac = instance({ database: url })
    await expect(ac.log.tail().next()).rejects.toMatchObject({ code: 'SCHEMA_TOO_OLD' })
    await ac.migrate()
    await expect(ac.log.tail({ on: ['not a pattern'] }).next()).rejects.toMatchObject({ code: 'BAD_PATTERN' })
    await expect(ac.log.tail({ from: -1n }).next()).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })
})
