import { expect, it } from 'vitest'
import { connect } from '../support/database.ts'
import { openLog } from './support/open-log.ts'

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
