/** A captured table whose change changes the table again: whichever way it does so, the loop ends at the limit of depth. */
import { expect, it } from 'vitest'
import { type Aftercommit, accept, defineWorkflow } from '../../src/index.ts'
import { openLog } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'

const MAX_DEPTH = 4
const CHANGE_AGAIN = 'update lamps set lit = lit + 1'

const looper = defineWorkflow({
  type: 'looper',
  id: () => '1',
  initial: () => ({}),
  evolve: (state: object, _event: { type: 'seen' }) => state,
  decide: (_state: object, _input: object) =>
    accept([{ type: 'seen' as const }], { effects: [{ type: 'again' as const }] }),
  on: { 'lamp.updated': () => ({}) },
})

const again = (ac: Aftercommit) => async () => {
  await ac.transaction((tx) => tx.query(CHANGE_AGAIN))
}

const WAYS: Record<string, (ac: Aftercommit) => unknown> = {
  'a handler': (ac) => ac.subscribe({ id: 'loop', on: ['lamp.updated'], handle: again(ac) }),
  'a transactional handler': (ac) =>
    ac.subscribe({
      id: 'loop',
      on: ['lamp.updated'],
      transactional: true,
      handle: (_, { tx }) => tx.query(CHANGE_AGAIN),
    }),
  'a database action': (ac) =>
    ac.observers.add({ name: 'loop', on: 'lamp.updated', actions: [{ type: 'database', function: 'again' }] }),
  'a custom action': (ac) => {
    ac.observers.action('again', again(ac))
    return ac.observers.add({ name: 'loop', on: 'lamp.updated', actions: [{ type: 'custom', handler: 'again' }] })
  },
  'an effect': (ac) => ac.workflows.register(looper, { effects: { again: again(ac) } }),
  'a hook': (ac) => ac.hooks.add({ name: 'loop', types: ['lamp.updated'], scope: 'cluster', handle: again(ac) }),
}

it.each(Object.keys(WAYS))(
  'a loop through a captured table and %s ends at the limit, with one dead letter',
  async (way) => {
    const { ac, sql } = await openLog({ log: { maxDepth: MAX_DEPTH } })
    await sql.query(`
    create table lamps (id integer primary key, lit integer);
    insert into lamps values (1, 0);
    select aftercommit.capture('lamps');
    create function again(event jsonb) returns void language sql as $$ ${CHANGE_AGAIN} $$`)
    await WAYS[way]!(ac)
    await ac.start()
    await sql.query("begin; set local aftercommit.correlation_id = 'first'; update lamps set lit = 1; commit")
    await eventually(async () => (await ac.deadLetters.list()).length > 0)
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(await ac.deadLetters.count()).toBe(1)
    const depths = (await ac.log.correlated('first')).map(({ metadata }) => metadata.depth)
    expect(depths).toEqual(Array.from({ length: MAX_DEPTH + 1 }, (_, depth) => depth))
  },
)
