/** Appending with an id of one's own may be repeated: one event, one position, a transaction that goes on. */
import { describe, expect, it } from 'vitest'
import { openLog, SERVERS } from '../log/support/open-log.ts'
import { poolOf } from '../log/support/pool-of.ts'
import { sessionsWait } from '../log/support/waiting.ts'
import { connect } from '../support/database.ts'

const definitely = { payload: { n: 1 }, id: 'payment-77' }

describe.each(SERVERS)('a chosen id on Postgres $major', ({ major }) => {
  it('appended by ten connections at once is one event, and all are told the same position', async () => {
    const { ac, url, sql } = await openLog({ major })
    const pool = poolOf(url, 10)

    for (let round = 0; round < 20; round++) {
      const id = `import-${round}`
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          ac.emitNow(pool, 'row.imported', { payload: { round }, metadata: { n }, id }),
        ),
      )
      expect(new Set(answers.map(({ position }) => position)).size).toBe(1)
      const { rows } = await sql.query('select position from aftercommit.events where id = $1', [id])
      expect(rows).toEqual([{ position: String(answers[0]!.position) }])
    }
  })

  it('waits for the first transaction that has it, and takes its place when that one rolls back', async () => {
    const { ac, url } = await openLog({ major })
    const first = await connect(url)
    await first.query('begin')
    await ac.emit(first, 'payment.taken', definitely)
    const second = ac.transaction((tx) => tx.emit('payment.taken', definitely))
    await sessionsWait(url, 1)
    await first.query('rollback')
    const { position } = await second
    expect((await ac.log.read()).map((event) => event.position)).toEqual([position])
  })

  it('given twice in one transaction is written once, and the transaction goes on', async () => {
    const { ac } = await openLog({ major })
    await ac.transaction(async (tx) => {
      const first = await tx.emit('payment.taken', definitely)
      expect(await tx.emit('payment.taken', definitely)).toEqual(first)
      await tx.emit('payment.booked', { payload: {} })
    })
    expect((await ac.log.read()).map(({ type }) => type)).toEqual(['payment.taken', 'payment.booked'])
  })

  it('known from before leaves the transaction usable, and what it carried the first time stays', async () => {
    const { ac } = await openLog({ major })
    const first = await ac.transaction((tx) => tx.emit('payment.taken', { ...definitely, payload: { a: 10, b: [1] } }))
    await ac.transaction(async (tx) => {
      const anew = { payload: { b: [1], a: 10 }, occurredAt: new Date(0), metadata: { userId: 'ada' } }
      expect(await tx.emit('payment.taken', { ...definitely, ...anew })).toEqual(first)
      await tx.query('create table booked as select 1 as one')
    })
    const events = await ac.log.read()
    expect(events.map(({ payload, metadata }) => [payload, metadata.userId])).toEqual([[{ a: 10, b: [1] }, null]])
  })

  it('stands for one event: with another type, aggregate, tenant, payload or changes it is refused', async () => {
    const { ac, sql } = await openLog({ major })
    const first = { aggregate: { type: 'payment', id: '77' }, payload: { n: 1 }, id: 'payment-77', tenant: 'home' }
    await ac.transaction((tx) => tx.emit('payment.taken', first))
    const others: [string, object][] = [
      ['payment.refunded', first],
      ['payment.taken', { ...first, aggregate: { type: 'payment', id: '78' } }],
      ['payment.taken', { ...first, tenant: undefined }],
      ['payment.taken', { ...first, payload: { n: 2 } }],
      ['payment.taken', { ...first, changes: { n: { old: 1, new: 2 } } }],
    ]
    for (const [type, event] of others) {
      const other = { type, ...(event as typeof first) }
      const refusal = { code: 'EVENT_ID_TAKEN', eventId: 'payment-77' }
      await expect(ac.emitNow(type, other)).rejects.toMatchObject(refusal)
      const batch = ac.transaction((tx) => tx.emit([{ type: 'lamp.lit', payload: {} }, other]))
      await expect(batch).rejects.toMatchObject(refusal)
    }
    const byHand = sql.query(`select aftercommit.emit('payment.taken', null, null, '{}', id => 'payment-77')`)
    await expect(byHand).rejects.toMatchObject({ code: 'AC017' })
    expect((await ac.log.read()).map(({ id }) => id)).toEqual(['payment-77'])
    // The content is known for as long as the id, which outlives its event.
    await sql.query('delete from aftercommit.events')
    await expect(ac.emitNow('payment.refunded', first)).rejects.toMatchObject({ code: 'EVENT_ID_TAKEN' })
    await ac.emitNow('payment.taken', first)
  })

  it('taken by two transactions at once for two events belongs to the first to commit', async () => {
    const { ac, url } = await openLog({ major })
    const first = await connect(url)
    await first.query('begin')
    await ac.emit(first, 'payment.taken', definitely)
    const second = ac.transaction((tx) => tx.emit('payment.refunded', definitely))
    second.catch(() => {})
    await sessionsWait(url, 1)
    await first.query('commit')
    await expect(second).rejects.toMatchObject({ code: 'EVENT_ID_TAKEN' })
    expect((await ac.log.read()).map(({ type }) => type)).toEqual(['payment.taken'])
  })

  it('in a batch is answered with its first position, beside those that are new', async () => {
    const { ac } = await openLog({ major })
    const known = await ac.transaction((tx) => tx.emit('row.imported', { payload: {}, id: 'row-2' }))
    const batch = await ac.transaction((tx) =>
      tx.emit([
        { type: 'row.imported', payload: {}, id: 'row-1' },
        { type: 'row.imported', payload: {}, id: 'row-2' },
        { type: 'row.imported', payload: {}, id: 'row-1' },
      ]),
    )
    expect(batch[1]).toEqual(known)
    expect(batch[2]).toEqual(batch[0])
    expect((await ac.log.read()).map(({ id }) => id)).toEqual(['row-2', 'row-1'])
  })

  it('is known to SQL users as well', async () => {
    const { ac, sql } = await openLog({ major })
    const emitted = await ac.transaction((tx) => tx.emit('payment.taken', definitely))
    const { rows } = await sql.query(
      `select aftercommit.emit('payment.taken', null, null, '{"n": 1}', id => 'payment-77') as position`,
    )
    expect(rows).toEqual([{ position: String(emitted.position) }])
  })

  it('is remembered when its event is no longer kept', async () => {
    const { ac, sql } = await openLog({ major })
    const emitted = await ac.transaction((tx) => tx.emit('payment.taken', definitely))
    await sql.query('delete from aftercommit.events')
    expect(await ac.transaction((tx) => tx.emit('payment.taken', definitely))).toEqual(emitted)
    expect(await ac.log.get('payment-77')).toBeUndefined()
  })

  it('does not use up versions of a stream when it is repeated', async () => {
    const { ac, url, sql } = await openLog({ major })
    await sql.query(`select aftercommit.declare_stream('account')`)
    const pool = poolOf(url, 10)
    const aggregate = { type: 'account', id: '1' }
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => ac.emitNow(pool, 'account.opened', { aggregate, payload: {}, id: 'opened-1' })),
    )
    expect(new Set(answers.map(({ version }) => version))).toEqual(new Set([1]))
    const next = await ac.emitNow(pool, 'account.closed', { aggregate, payload: {} })
    expect(next.version).toBe(2)
  })

  it('expected at a version and repeated while the first is being committed is the same event, not a conflict', async () => {
    const { ac, url, sql } = await openLog({ major })
    await sql.query(`select aftercommit.declare_stream('account')`)
    const opening = { aggregate: { type: 'account', id: '1' }, payload: {}, id: 'opened-1', expectedVersion: 0 }
    const first = await connect(url)
    await first.query('begin')
    const emitted = await ac.emit(first, 'account.opened', opening)
    const repeated = ac.transaction((tx) => tx.emit('account.opened', opening))
    await sessionsWait(url, 1)
    await first.query('commit')
    expect(await repeated).toEqual(emitted)
    expect((await ac.log.stream(opening.aggregate)).map(({ version }) => version)).toEqual([1])
  })
})
