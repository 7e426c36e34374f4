/** Appends as prepared statements: on connections of the instance always, on clients of the caller by option alone. */
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { connect } from '../support/database.ts'
import { openLog, SERVERS } from './support/open-log.ts'

const lit = { payload: { watts: 60 } }
const APPENDS = `select count(*)::integer as count from pg_prepared_statements where statement like '%append%'`

/** On this very connection. */
async function countPrepared(client: { query(text: string): Promise<{ rows: unknown[] }> }): Promise<number> {
  const { rows } = await client.query(APPENDS)
  return (rows[0] as { count: number }).count
}

/** The function that appends answers another type from here on, as after a migration that changes it. */
async function changeResultType(sql: pg.Client): Promise<void> {
  const { rows } = await sql.query(`select pg_get_functiondef('aftercommit.append'::regproc) as definition`)
  const definition = String(rows[0].definition).replace(/returns text/i, 'returns varchar')
  await sql.query(`drop function aftercommit.append; ${definition}`)
}

describe.each(SERVERS)('appends on PostgreSQL $major', (server) => {
  it('are prepared once per connection of the instance, inside and outside of its transactions', async () => {
    const { ac } = await openLog({ ...server, poolSize: 1 })
    for (const _ of [1, 2, 3]) await ac.emitNow('lamp.lit', lit)
    await ac.transaction(async (tx) => {
      for (const _ of [1, 2, 3]) await tx.emit('lamp.lit', lit)
      await Promise.all([tx.emit('lamp.lit', lit), tx.emit('lamp.lit', { ...lit, tenant: 'a' })])
      await Promise.all([1, 2].map(() => tx.emit('lamp.lit', { ...lit, tenant: 'a' })))
      expect(await countPrepared(tx)).toBe(2)
    })
  })

  it('are not prepared on a client of the caller, whose transaction survives DEALLOCATE', async () => {
    const { ac, url, sql } = await openLog(server)
    const client = await connect(url)
    await client.query('begin')
    await ac.emit(client, 'lamp.lit', lit)
    expect(await countPrepared(client)).toBe(0)
    await client.query('deallocate all')
    await ac.emit(client, 'lamp.lit', lit)
    await client.query('commit')
    expect((await sql.query('select from aftercommit.events')).rowCount).toBe(2)
  })

  it('are prepared on a client of the caller with prepareOnClients, and DEALLOCATE then ends its transaction', async () => {
    const { ac, url } = await openLog({ ...server, log: { prepareOnClients: true } })
    const client = await connect(url)
    for (const _ of [1, 2]) await ac.emitNow(client, 'lamp.lit', lit)
    expect(await countPrepared(client)).toBe(1)
    await client.query('begin')
    await client.query('deallocate all')
    await expect(ac.emit(client, 'lamp.lit', lit)).rejects.toMatchObject({ code: '26000' })
    await client.query('rollback')
  })

  it('go on after a DEALLOCATE in a transaction of the instance', async () => {
    const { ac, sql } = await openLog({ ...server, poolSize: 1 })
    await ac.emitNow('lamp.lit', lit)
    await ac.transaction(async (tx) => {
      await tx.emit('lamp.lit', lit)
      await tx.query('select 1; deallocate all')
      await tx.emit('lamp.lit', lit)
    })
    await ac.emitNow('lamp.lit', lit)
    expect((await sql.query('select from aftercommit.events')).rowCount).toBe(4)
  })

  it('go on where a cached plan must not change its result type', async () => {
    const { ac, sql } = await openLog({ ...server, poolSize: 1 })
    await ac.emitNow('lamp.lit', lit)
    await changeResultType(sql)
    await ac.emitNow('lamp.lit', lit)
    await ac.transaction((tx) => tx.emit('lamp.lit', lit))
    expect((await sql.query('select from aftercommit.events')).rowCount).toBe(3)
  })

  it('fail one transaction of the instance where a cached plan must not change its result type', async () => {
    const { ac, sql } = await openLog({ ...server, poolSize: 1 })
    await ac.emitNow('lamp.lit', lit)
    await changeResultType(sql)
    const append = () => ac.transaction((tx) => tx.emit('lamp.lit', lit))
    await expect(append()).rejects.toMatchObject({ code: '0A000' })
    await append()
    expect((await sql.query('select from aftercommit.events')).rowCount).toBe(2)
  })
})
