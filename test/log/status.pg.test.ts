import { expect, it } from 'vitest'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { openLog, SERVERS } from './support/open-log.ts'

it('status counts at most 10,000 of the events that an open transaction keeps from becoming final', async () => {
  const { ac, sql, url } = await openLog()
  const holder = await connect(url)
  await holder.query('begin')
  await holder.query(`select aftercommit.emit('lamp.lit', null, null, '{}')`)
  const append = (count: number) =>
    sql.query(`select count(aftercommit.emit('lamp.lit', null, null, '{}')) from generate_series(1, $1::integer)`, [
      count,
    ])
  await append(9_999)
  expect((await ac.status()).log).toMatchObject({ frontier: 0n, lag: 9_999 })
  await append(2)
  expect((await ac.status()).log).toMatchObject({ frontier: 0n, lag: 10_000, head: 10_002n })
  await holder.query('rollback')
})

it.each(SERVERS)('a log that a logical subscription writes is not followed, on Postgres $major', async ({ major }) => {
  const { ac, sql } = await openLog({ major })
  const name = `ac_subscriber_${process.pid}`
  await sql.query(`create subscription ${name} connection 'dbname=none' publication none
                   with (connect = false, enabled = false, slot_name = none, create_slot = false)`)
  await sql.query(`insert into pg_subscription_rel (srsubid, srrelid, srsubstate)
                   select oid, 'aftercommit.events_open'::regclass, 'r' from pg_subscription where subname = '${name}'`)
  expect((await ac.log.status()).problem).toContain('logical subscription')
  ac.subscribe({ id: 'sub', handle: () => {} })
  void ac.start().catch(() => {})
  await eventually(() => JSON.stringify(ac.health().reasons).includes('logical subscription'))
  await sql.query(`drop subscription ${name}`)
})
