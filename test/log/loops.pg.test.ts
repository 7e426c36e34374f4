/** An event that causes itself: whichever way it does so, the chain of causes is counted and the loop ends. */
import { expect, it } from 'vitest'
import { type Aftercommit, accept, defineWorkflow } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openLog } from './support/open-log.ts'

const MAX_DEPTH = 4
/** In SQL: what a trigger or a function of the user emits knows nothing but the settings of its transaction. */
const EMIT_AGAIN = `select aftercommit.emit('lamp.lit', 'lamp', '1', '{}')`

const looper = defineWorkflow({
  type: 'looper',
  id: () => '1',
  initial: () => ({}),
  evolve: (state: object, _event: { type: 'seen' }) => state,
  decide: (_state: object, _input: object) =>
    accept([{ type: 'seen' as const }], { effects: [{ type: 'again' as const }] }),
  on: { 'lamp.lit': () => ({}) },
})

const again = (ac: Aftercommit) => async () => {
  await ac.transaction((tx) => tx.query(EMIT_AGAIN))
}

const WAYS: Record<string, (ac: Aftercommit) => unknown> = {
  'a handler': (ac) => ac.subscribe({ id: 'loop', on: ['lamp.lit'], handle: again(ac) }),
  'a transactional handler': (ac) =>
    ac.subscribe({ id: 'loop', on: ['lamp.lit'], transactional: true, handle: (_, { tx }) => tx.query(EMIT_AGAIN) }),
  'a database action': (ac) =>
    ac.observers.add({ name: 'loop', on: 'lamp.lit', actions: [{ type: 'database', function: 'again' }] }),
  'a custom action': (ac) => {
    ac.observers.action('again', again(ac))
    return ac.observers.add({ name: 'loop', on: 'lamp.lit', actions: [{ type: 'custom', handler: 'again' }] })
  },
  'an effect': (ac) => ac.workflows.register(looper, { effects: { again: again(ac) } }),
  'a hook': (ac) => ac.hooks.add({ name: 'loop', types: ['lamp.lit'], scope: 'cluster', handle: again(ac) }),
}

it.each(Object.keys(WAYS))('a loop through %s ends at the limit, with one dead letter', async (way) => {
  const { ac, sql } = await openLog({ log: { maxDepth: MAX_DEPTH } })
  await sql.query(`create function again(event jsonb) returns bigint language sql as $$ ${EMIT_AGAIN} $$`)
  await WAYS[way]!(ac)
  await ac.start()
  await ac.transaction((tx) => tx.emit('lamp.lit', { id: 'first', payload: {} }))
  const [letter] = await eventually(async () => {
    const letters = await ac.deadLetters.list()
    return letters.length > 0 && letters
  })
  expect(await ac.drain()).toMatchObject({ drained: true })
  expect(await ac.deadLetters.count()).toBe(1)
  expect(letter).toMatchObject({ attempts: 1 })
  const depths = (await ac.log.correlated('first')).map(({ metadata }) => metadata.depth)
  expect(depths).toEqual(Array.from({ length: MAX_DEPTH + 1 }, (_, depth) => depth))
})
