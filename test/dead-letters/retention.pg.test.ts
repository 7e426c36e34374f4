import { expect, it } from 'vitest'
import { openWorkflows } from '../workflows/support/open-workflows.ts'

it('letters that were dealt with go after their time; what is dead or still in the way of others stays', async () => {
  const { open, sql } = await openWorkflows()
  const letter = (status: string, days: number, { count = 1, parks = false, delivery = null as object | null } = {}) =>
    sql.query(
      `insert into aftercommit.letters (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at,
                                        last_attempt_at, status, parks, changed_at, delivery)
       select 'subscription', 'mail', 'k', $1::text || n, n, '{}', '{}', 1, now(), now(), $2, $3,
              now() - make_interval(days => $4), $6
         from generate_series(1, $5) n`,
      [`${status} ${days} ${parks} `, status, parks, days, count, delivery],
    )
  await letter('resolved', 31, { count: 2_500 })
  await letter('discarded', 31)
  await letter('dead', 400)
  await letter('redriving', 400)
  await letter('resolved', 29)
  await letter('discarded', 31, { parks: true })
  // Of a delivery: nothing but the letter itself was in the way.
  await letter('resolved', 31, { parks: true, delivery: { id: 1 } })
  await open().upkeep()
  const left = async () => {
    const { rows } = await sql.query(`select trim(event_id) as id from aftercommit.letters order by id`)
    return rows.map(({ id }) => id)
  }
  const staying = ['dead 400 false 1', 'discarded 31 true 1', 'redriving 400 false 1']
  expect((await left()).sort()).toEqual([...staying, 'resolved 29 false 1'])
  await open({ dlq: { retention: '7d' } }).upkeep()
  expect((await left()).sort()).toEqual(staying)
})
