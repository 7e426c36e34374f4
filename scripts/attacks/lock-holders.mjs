/** A role that may connect and nothing else keeps the lock of the sequence in every way it has, while others emit. */
import pg from 'pg'

export const title = 'A role that may only connect cannot keep readers from the events of others.'

const toml = `[observers.plain]
on = "lamp.*"
[[observers.plain.actions]]
type = "log"
message = "plain saw {{ event.id }}"
`

export async function run({ start, sql, url, hold }) {
  await sql(
    `do $$ begin create role stranger login password 'stranger'; exception when duplicate_object then null; end $$`,
  )
  const [{ sequence }] = await sql(`select 'aftercommit.positions'::regclass::oid::text as sequence`)
  const served = await start(toml)
  const strangers = []
  try {
    for (const statement of [`select nextval(${sequence})`, `select pg_sequence_last_value(${sequence})`]) {
      const stranger = new pg.Client({ connectionString: url, user: 'stranger', password: 'stranger' })
      await stranger.connect()
      strangers.push(stranger)
      await stranger.query('begin; savepoint here')
      await stranger.query(statement).catch(() => stranger.query('rollback to savepoint here'))
    }
    const locks = await sql(
      `select from pg_locks where relation = ${sequence} and mode = 'RowExclusiveLock' and granted`,
    )
    hold(locks.length >= 2, `the strangers hold ${locks.length} locks of the sequence, so nothing was attacked`)
    // A hole, which readers pass once nobody can fill it any more.
    await sql(`begin; select aftercommit.emit('lamp.lit', null, null, '{}'); rollback`)
    await sql(`select aftercommit.emit('lamp.lit', null, null, '{}', id => 'after')`)
    await served.line('plain saw after')
  } finally {
    for (const stranger of strangers) await stranger.end()
  }
}
