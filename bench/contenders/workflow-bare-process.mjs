/** The rows of a two-step workflow by bare SQL: three transactions, each sent in one piece, and no recovery. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { payload } from '../measure.mjs'
import { readConfig, serve } from './child.mjs'
import { playInFlight } from './in-flight.mjs'

const { database, poolSize } = readConfig()
const body = JSON.stringify(payload)
const free = Array.from({ length: poolSize }, () => new pg.Client({ connectionString: database, pipeline: true }))
const all = [...free]
await Promise.all(all.map((client) => client.connect()))
await all[0].query(`
  create table instances (id uuid primary key, version int not null);
  create table events (position bigint generated always as identity primary key, id uuid not null unique, type text not null,
    instance uuid not null, version int not null, payload jsonb not null, unique (instance, version));
  create table work (id bigint generated always as identity primary key, instance uuid not null unique, type text not null)`)
const waiting = []

serve({
  play: (wanted) => playInFlight(wanted, playFlow),
  close: () => Promise.all(all.map((client) => client.end())),
})

async function playFlow() {
  const id = randomUUID()
  await commit([['insert into instances values ($1, 1)', [id]], event(id, 1, 'placed'), work(id, 'charge')])
  await commit([done(id), advance(id, 2), event(id, 2, 'charged'), work(id, 'notify')])
  await commit([done(id), advance(id, 3), event(id, 3, 'notified')])
}

const done = (id) => ['delete from work where instance = $1', [id]]
const advance = (id, version) => ['update instances set version = $2 where id = $1', [id, version]]
const work = (id, type) => ['insert into work (instance, type) values ($1, $2)', [id, type]]
const event = (id, version, type) => [
  'insert into events (id, type, instance, version, payload) values ($1, $2, $3, $4, $5)',
  [randomUUID(), `flow.${type}`, id, version, body],
]

async function commit(statements) {
  const client = free.pop() ?? (await new Promise((resolve) => waiting.push(resolve)))
  await Promise.all([['begin'], ...statements, ['commit']].map(([text, values]) => client.query(text, values)))
  const next = waiting.shift()
  if (next) next(client)
  else free.push(client)
}
