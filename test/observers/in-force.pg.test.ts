/** Which rules an event is judged by, and that the database tells the same. */
import { expect, test } from 'vitest'
import type { Aftercommit } from '../../src/instance.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'

/** What each observer was called with, as `observer event`. */
function calls(...instances: Pick<Aftercommit, 'observers'>[]): string[] {
  const seen: string[] = []
  for (const ac of instances)
    ac.observers.action('call', (event, { observer }) => void seen.push(`${observer} ${event.id}`))
  return seen
}

const rule = (name: string, on = 'lamp.lit') => ({
  name,
  on,
  actions: [{ type: 'custom', name: 'call', handler: 'call' }],
})

/** Somebody waits for a lock in this database, with a statement that contains the text. */
const WAITS = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query ~ $1`

/** Said by a process that does not read, when it has found that another one does. */
const STANDS_BY = 'info lease held elsewhere'

/** Only what has begun can be paused for certain. */
async function pause(ac: Pick<Aftercommit, 'subscriptions'>): Promise<void> {
  const observers = ac.subscriptions.get('observers')
  await eventually(async () => (await observers.status()).owner !== null)
  await observers.pause()
}

test('an event committed after an observer was added is seen by it, also when the database is slow', async () => {
  const { ac, emit, sql, url } = await openSubscriptions()
  const seen = calls(ac)
  await ac.start()
  const other = await connect(url)
  await other.query('begin; lock table aftercommit.subscriptions in access exclusive mode')
  const adding = ac.observers.add(rule('erp'))
  await eventually(async () => (await sql.query(WAITS, ['subscriptions'])).rowCount! > 0)
  await other.query('commit')
  await adding
  await emit('a')
  await eventually(() => seen.length === 1)
})

test('an event committed after a start is seen by a new observer, also when that process never came to read', async () => {
  const { ac, another, emit } = await openSubscriptions()
  calls(ac)
  await ac.observers.add(rule('erp'))
  await ac.start()
  await emit('a')
  await ac.stop()
  const next = another()
  const seen = calls(next)
  await next.observers.add(rule('erp'))
  // Whatever the first one did about the event, this one does again.
  await next.subscriptions.get('observers').seek('start')
  await next.start()
  await eventually(() => seen.length === 1)
})

test('what is committed while a change is under way is judged by all of the new rules', async () => {
  const { ac, emit, sql, url } = await openSubscriptions()
  const seen = calls(ac)
  await ac.observers.add(rule('one'))
  await ac.start()
  await emit('before')
  await eventually(() => seen.length === 1)
  const other = await connect(url)
  await other.query('begin; lock table aftercommit.destinations in access exclusive mode')
  const adding = ac.observers.add(rule('two'))
  // Others ask for destinations as well: this is who writes the new limits, when nobody reads by the old rules any more.
  await eventually(async () => (await sql.query(WAITS, ['insert into .*destinations'])).rowCount! > 0)
  await emit('a')
  await other.query('commit')
  await adding
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['one a', 'one before', 'two a'])
  const { observers } = await ac.observers.explain('a')
  expect(observers.map(({ observer, verdict }) => `${observer} ${verdict}`)).toEqual(['one matched', 'two matched'])
})

test('of two changes right after the other the second is in force', async () => {
  const { ac, emit, sql, url } = await openSubscriptions()
  const seen = calls(ac)
  await ac.observers.add(rule('zero', 'lamp.zero'))
  await ac.start()
  const other = await connect(url)
  await other.query('begin; lock table aftercommit.subscriptions in access exclusive mode')
  const changes = ['one', 'two'].map((name) => ac.observers.add(rule(name, `lamp.${name}`)))
  await eventually(async () => (await sql.query(WAITS, ['subscriptions'])).rowCount! > 0)
  await other.query('commit')
  await Promise.all(changes)
  for (const name of ['zero', 'one', 'two']) await emit(name, { type: `lamp.${name}` })
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['one one', 'two two', 'zero zero'])
})

test('an observer whose start somebody else wrote down at the same moment begins there', async () => {
  const { ac, emit, sql, url } = await openSubscriptions()
  const seen = calls(ac)
  const other = await connect(url)
  await ac.observers.add(rule('one'))
  await ac.start()
  await pause(ac)
  await emit('old')
  await other.query('begin')
  await other.query(
    `insert into aftercommit.observer_actions select 'two', 'call', max(position) from aftercommit.events`,
  )
  const adding = ac.observers.add(rule('two'))
  await eventually(async () => (await sql.query(WAITS, ['observer_actions'])).rowCount! > 0)
  await other.query('commit')
  await adding
  await emit('new')
  await ac.subscriptions.get('observers').resume()
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['one new', 'one old', 'two new'])
})

test('a change that failed is not told as in force, and the rules before go on', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const seen = calls(ac)
  await ac.observers.add({ ...rule('one'), concurrency: 3 })
  await ac.start()
  await sql.query('alter table aftercommit.observer_actions rename to away')
  await expect(ac.observers.add({ ...rule('two'), concurrency: 1 })).rejects.toThrow('observer_actions')
  await sql.query('alter table aftercommit.away rename to observer_actions')
  await emit('a')
  await eventually(() => seen.length === 1)
  const { observers } = await ac.observers.explain('a')
  expect(observers.map(({ observer }) => observer)).toEqual(['one'])
  const { rows } = await sql.query('select destination from aftercommit.destinations where concurrency is not null')
  expect(rows).toEqual([{ destination: 'observer one' }])
  await ac.observers.add(rule('two'))
  await emit('b')
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['one a', 'one b', 'two b'])
})

test('a first observer that could not be put in force is not read with, and the next one is', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const seen = calls(ac)
  await ac.start()
  await sql.query('alter table aftercommit.observer_actions rename to away')
  await expect(ac.observers.add(rule('one'))).rejects.toThrow('observer_actions')
  await sql.query('alter table aftercommit.away rename to observer_actions')
  expect(await ac.observers.status()).toEqual([])
  await ac.observers.add(rule('two'))
  await emit('a')
  await eventually(() => seen.length === 1)
  expect(seen).toEqual(['two a'])
})

test('rules that can neither be put in force nor taken back are left as soon as somebody would read with them', async () => {
  const { ac, emit, sql } = await openSubscriptions()
  const seen = calls(ac)
  await ac.observers.add(rule('one'))
  await ac.start()
  // The new ones are placed, nothing can be written about them, and then the old ones cannot be placed.
  await sql.query(`alter table aftercommit.observer_actions rename to away`)
  await sql.query(
    `create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'no more changes'; end $$`,
  )
  await sql.query(
    `create trigger refuse before update on aftercommit.subscriptions for each row
       when (old.generation = 2 and new.generation = 3) execute function public.refuse()`,
  )
  await expect(ac.observers.add(rule('two'))).rejects.toThrow('observer_actions')
  await sql.query(
    'alter table aftercommit.away rename to observer_actions; drop trigger refuse on aftercommit.subscriptions',
  )
  await emit('a')
  await eventually(() => seen.length > 0)
  await emit('b')
  await eventually(() => seen.length > 1)
  expect(seen).toEqual(['one a', 'one b'])
  const { observers } = await ac.observers.explain('b')
  expect(observers.map(({ observer }) => observer)).toEqual(['one'])
})

test('a process that stands by writes nothing about its rules until it reads with them', async () => {
  const [first, second] = [collectingLogger(), collectingLogger()]
  const { ac, another, emit, sql } = await openSubscriptions({ logger: first.logger })
  const next = another({ logger: second.logger })
  const seen = calls(ac, next)
  await ac.observers.add(rule('one'))
  await next.observers.add(rule('two'))
  await ac.start()
  await next.start()
  // Before it hears that others are in force, a process may begin an event, which is then judged again.
  await eventually(() => first.lines.includes(STANDS_BY))
  await emit('a')
  await eventually(() => seen.length > 0)
  // What is in no checkpoint when it is taken over is judged again.
  await eventually(async () => (await ac.subscriptions.get('observers').status()).lag === 0n)
  // The rules that came last are in force, and those of the first process are closed.
  expect(seen).toEqual(['two a'])
  const versions = async () =>
    (
      await sql.query(
        `select observer, version, definition is not null as "isOn" from aftercommit.observer_versions order by observer, version`,
      )
    ).rows.map(({ observer, version, isOn }) => `${observer} ${version} ${isOn ? 'on' : 'off'}`)
  expect(await versions()).toEqual(['one 1 on', 'one 2 off', 'two 1 on'])
  second.lines.length = 0
  await ac.observers.add(rule('three'))
  await eventually(() => second.lines.includes(STANDS_BY))
  await emit('b')
  await eventually(() => seen.length > 2)
  expect(seen.slice(1).sort()).toEqual(['one b', 'three b'])
  expect(await versions()).toEqual(['one 1 on', 'one 2 off', 'one 3 on', 'three 1 on', 'two 1 on', 'two 2 off'])
})

test('a backlog is judged by changed rules and explained by them; what is new is not asked about it', async () => {
  const { ac, emit } = await openSubscriptions()
  const seen = calls(ac)
  await ac.observers.add(rule('one', 'lamp.never'))
  await ac.start()
  await pause(ac)
  await emit('waiting')
  await ac.observers.add(rule('one', 'lamp.lit'))
  await ac.observers.add(rule('two', 'lamp.lit'))
  await emit('later')
  await ac.subscriptions.get('observers').resume()
  await eventually(() => seen.length === 3)
  expect(seen.sort()).toEqual(['one later', 'one waiting', 'two later'])
  const explained = async (id: string) =>
    (await ac.observers.explain(id)).observers.map(({ observer, verdict }) => `${observer} ${verdict}`)
  expect(await explained('waiting')).toEqual(['one matched', 'two not_in_force'])
  expect(await explained('later')).toEqual(['one matched', 'two matched'])
})
