/** Events of up to 100 MB, 10,000 levels and swollen numbers come from a role that may only emit, and from a log of older days. */
import pg from 'pg'

export const title =
  'No event is too large or too deep for readers: the database refuses it, and an older one is passed.'

const toml = `[observers.plain]
on = "lamp.*"
[[observers.plain.actions]]
type = "log"
message = "plain saw {{ event.id }}"
`

const refused = [
  ['a payload of 20 MB', 'AC005', `to_jsonb(repeat('x', 20000000))`],
  ['a payload of 10,000 levels', 'AC016', `(repeat('[', 10000) || repeat(']', 10000))::jsonb`],
  ['numbers of 13 GB as text', 'AC005', `('[' || repeat('1e131000,', 100000) || '1]')::jsonb`],
]

export async function run({ start, sql, cli, url, quick, hold }) {
  await sql(`do $$ begin create role heavy login password 'heavy'; exception when duplicate_object then null; end $$`)
  const granted = await cli('migrate', '--grant-emit', 'heavy')
  hold(granted.code === 0, `the role was not granted: ${granted.stderr}`)
  const emitter = new pg.Client({ connectionString: url, user: 'heavy', password: 'heavy' })
  await emitter.connect()
  try {
    for (const [what, code, payload] of refused) {
      const metadata = `'{}'::jsonb`
      for (const statement of [
        `select aftercommit.emit('lamp.lit', null, null, ${payload})`,
        `select aftercommit.append('one', 'lamp.lit', null, null, ${payload}, ${metadata})`,
        `select aftercommit.append('one', 'lamp.lit', null, null, '{}', ${metadata}, null, jsonb_build_object('changes', ${payload}))`,
        `select aftercommit.append_many('{one}', '{lamp.lit}', null, null, jsonb_build_array(${payload}), '[{}]')`,
      ]) {
        const answer = await emitter.query(statement).then(
          () => 'taken',
          (error) => error.code,
        )
        hold(answer === code, `${what} was answered ${answer}: ${statement.slice(0, 60)}`)
      }
    }
  } finally {
    await emitter.end()
  }

  // Rows of a day on which nothing was refused.
  const insert = (id, payload, type = 'lamp.lit') =>
    sql(
      `insert into aftercommit.events (id, type, payload, metadata, occurred_at) values ($1, $2, ${payload}, '{}', now())`,
      [id, type],
    )
  const bytes = quick ? 17_000_000 : 100_000_000
  for (let n = 1; n <= 6; n++) await insert(`large ${n}`, `to_jsonb(repeat('x', ${bytes}))`)
  await insert('deep', `(repeat('[', 10000) || repeat(']', 10000))::jsonb`)
  await insert('logout', `(repeat('[', 1500) || repeat(']', 1500))::jsonb`, 'auth.logout')
  const served = await start(toml, { env: { NODE_OPTIONS: '--max-old-space-size=128' } })
  await insert('large 7', `to_jsonb(repeat('x', ${bytes}))`)
  await sql(`select aftercommit.emit('lamp.lit', null, null, '{}', id => 'after')`)
  await served.line('plain saw after')
  hold(served.isRunning(), 'the process died')
}
