/** Two services emit. One takes the ids that the other is about to use, and holds what a name could lock. */
import pg from 'pg'

export const title = 'Taking an id first makes no event of another service vanish, and no advisory lock stops a batch.'

export async function run({ ac, mount, sql, cli, url, hold }) {
  await sql(
    `do $$ begin create role squatter login password 'squatter'; exception when duplicate_object then null; end $$`,
  )
  const granted = await cli('migrate', '--grant-emit', 'squatter')
  hold(granted.code === 0, `the role was not granted: ${granted.stderr}`)
  const squatter = new pg.Client({ connectionString: url, user: 'squatter', password: 'squatter' })
  await squatter.connect()
  try {
    await squatter.query(`select aftercommit.emit('lamp.lit', null, null, '{}', id => 'payment-1')`)
    const answer = await ac
      .emitNow('payment.taken', { payload: { amount: 9 }, id: 'payment-1' })
      .catch((error) => error.code)
    hold(answer === 'EVENT_ID_TAKEN', `an event under a taken id was answered ${JSON.stringify(answer)}`)

    await squatter.query(
      `select pg_advisory_lock(hashtextextended('aftercommit:"aftercommit":inbound:' || n, 0)) from generate_series(0, 63) n`,
    )
    const { address } = await mount({})
    const event = (id) => ({
      specversion: '1.0',
      id,
      source: '/house',
      type: 'lamp.lit',
      data: {},
      time: new Date().toISOString(),
    })
    for (const status of [202, 200]) {
      const given = await fetch(`${address}/inbound`, {
        method: 'POST',
        headers: {
          'content-type': 'application/cloudevents-batch+json',
          authorization: 'Bearer a-token-that-no-client-guesses',
        },
        body: JSON.stringify([event('1'), event('2')]),
        signal: AbortSignal.timeout(8_000),
      })
      hold(given.status === status, `a batch was answered ${given.status}, not ${status}`)
    }
  } finally {
    await squatter.end()
  }
}
