import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildPackage } from '../support/build.ts'
import { subscribedLog } from './subscribed-log.ts'

beforeAll(buildPackage)

/** Somebody writes a row by hand where a transaction was rolled back, after readers were told that all was final. */
async function writeBelowTheFrontier(sql: pg.Client, position: number): Promise<void> {
  await sql.query(`insert into aftercommit.frontier_marks (frontier) select max(position) from aftercommit.events`)
  const { rows } = await sql.query<{ columns: string }>(
    `select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
      where attrelid = 'aftercommit.events'::regclass and attnum > 0 and attgenerated = '' and not attisdropped`,
  )
  const [{ columns }] = rows as [{ columns: string }]
  await sql.query(
    `insert into aftercommit.events (${columns})
     select ${columns}
       from (select (jsonb_populate_record(e, jsonb_build_object('position', $1::int, 'id', 'late', 'recorded_at', clock_timestamp()))).*
               from aftercommit.events e order by position limit 1) late`,
    [position],
  )
}

describe('verify', () => {
  it('exits with 0 when nothing was skipped, and counts events and holes', async () => {
    const { cli, emit, caughtUp, sql } = await subscribedLog()
    await emit('first', '1')
    await sql.query('begin')
    await emit('never', '1')
    await sql.query('rollback')
    await emit('second', '2')
    await caughtUp()
    const { code, stdout, stderr } = await cli('verify')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^mail:receipts +3 +0 +0 +0$/m)
    expect(stdout).toContain('Walked 2 events and 1 hole up to position 3.\nNothing was skipped.\n')
  })

  it('exits with 1 and names what was written too late, and who has skipped it', async () => {
    const { cli, emit, caughtUp, sql } = await subscribedLog()
    await emit('first', '1')
    await sql.query('begin')
    await emit('never', '1')
    await sql.query('rollback')
    await emit('second', '2')
    await caughtUp()
    await writeBelowTheFrontier(sql, 2)
    const { code, stdout } = await cli('verify')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^mail:receipts +3 +1 +0 +0$/m)
    expect(stdout).toMatch(/^ +2 +order\.placed +late$/m)
    expect(stdout).not.toContain('Nothing was skipped')
    const report = await cli('verify', '--json')
    expect({ code: report.code, ...JSON.parse(report.stdout) }).toMatchObject({
      code: 1,
      ok: false,
      late: [{ position: '2', id: 'late', type: 'order.placed' }],
      subscriptions: [
        { id: 'mail:receipts', skipped: 1 },
        { id: 'projection:sales', skipped: 1 },
      ],
    })
  })

  it('says what to do where the log is not installed', async () => {
    const { cli } = await subscribedLog()
    const { code, stderr } = await cli('verify', '--schema', 'nowhere')
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('aftercommit migrate') })
  })
})
