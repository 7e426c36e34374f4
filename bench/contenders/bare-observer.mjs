/** The rows of an observer by bare SQL: pages of 500 events, for each a record and one checkpoint in a transaction. */
import pg from 'pg'
import { now } from './child.mjs'
import { createBenchDatabase } from './database.mjs'

const PAGE = 500

export async function openBareObserver({ server, name }) {
  const database = await createBenchDatabase(server.url, name)
  const client = new pg.Client({ connectionString: database.url, pipeline: true })
  await client.connect()
  await client.query(`
    create table events (position bigint generated always as identity primary key, payload jsonb not null);
    create table runs (id bigint generated always as identity primary key, event bigint not null, ran_at timestamptz not null);
    create table checkpoint (position bigint not null);
    insert into checkpoint values (0)`)
  let position = '0'

  async function workOff() {
    for (;;) {
      const { rows } = await client.query('select * from events where position > $1 order by position limit $2', [
        position,
        PAGE,
      ])
      if (rows.length === 0) return
      position = rows.at(-1).position
      await Promise.all([
        client.query('begin'),
        client.query('insert into runs (event, ran_at) select unnest($1::bigint[]), now()', [
          rows.map((row) => row.position),
        ]),
        client.query('update checkpoint set position = $1', [position]),
        client.query('commit'),
      ])
    }
  }

  return {
    async start() {},
    async commit(calls) {
      await client.query('begin')
      await client.query('insert into events (payload) select * from jsonb_array_elements($1::jsonb)', [
        JSON.stringify(calls.map(({ data }) => data)),
      ])
      const committing = now()
      await client.query('commit')
      return committing
    },
    settled: workOff,
    async close() {
      await client.end()
      await database.close()
    },
  }
}
