/** Inputs that come at the same time share transactions. What one of them does must not be the business of the others. */
import { describe, expect, it } from 'vitest'
import { accept, defineWorkflow, reject } from '../../src/index.ts'
import { connect } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { openWorkflows } from './support/open-workflows.ts'

const counter = defineWorkflow({
  type: 'counter',
  id: ({ id }: { id: string; fails?: boolean; refuses?: boolean; note?: number }) => id,
  initial: () => ({ notes: [] as (number | undefined)[] }),
  evolve: ({ notes }, { note }: { type: 'counted'; note?: number }) => ({ notes: [...notes, note] }),
  decide({ notes }, { id, fails, refuses, note }) {
    seen.set(id, notes)
    if (refuses) return reject('no')
    if (fails) throw new TypeError('a mistake in the workflow')
    return accept([{ type: 'counted', ...(note === undefined ? {} : { note }) }])
  },
})

/** What each instance was last decided on. */
const seen = new Map<string, readonly (number | undefined)[]>()

const ids = (count: number) => Array.from({ length: count }, (_, n) => `i${n}`)

async function opened() {
  const all = await openWorkflows()
  const ac = all.open()
  ac.workflows.register(counter)
  const count = (id: string, words: { fails?: boolean; note?: number } = {}) =>
    ac.workflows.execute(counter, { id, ...words })
  const transactions = async () =>
    Number((await all.sql.query('select count(distinct xmin::text) as n from aftercommit.events')).rows[0].n)
  return { ...all, ac, count, transactions }
}

describe('inputs that come together', () => {
  it('are written in few transactions, each for its own instance', async () => {
    const { count, rows, transactions } = await opened()
    const outcomes = await Promise.all(ids(200).map((id) => count(id)))
    expect(outcomes.every(({ outcome }) => outcome === 'accepted')).toBe(true)
    expect(await rows('workflow_instances', 'version = 1')).toBe(200)
    expect(await transactions()).toBeLessThan(50)
  })

  it('with different numbers of events each get their own, in order', async () => {
    const { ac, rows, sql } = await opened()
    const burst = defineWorkflow({
      type: 'burst',
      id: ({ id }: { id: string; more: number }) => id,
      initial: () => 0,
      evolve: (count) => count + 1,
      decide: (_, { more }) => accept([{ type: 'first' }, ...Array.from({ length: more }, () => ({ type: 'next' }))]),
    })
    ac.workflows.register(burst)
    await Promise.all(ids(40).map((id, n) => ac.workflows.execute(burst, { id, more: n % 4 })))
    await Promise.all(ids(40).map((id, n) => ac.workflows.execute(burst, { id, more: n % 3 })))
    expect(await rows('workflow_instances', "type = 'burst'")).toBe(40)
    const { rows: wrong } = await sql.query(
      `select i.id from aftercommit.workflow_instances i, lateral (
         select max(e.position) as last, min(e.position) - 1 as needed, array_agg(e.version order by e.position) as versions
           from aftercommit.events e where e.aggregate_type = 'burst' and e.aggregate_id = i.id) h
        where i.type = 'burst' and not (i.last_position = h.last and i.needed_after = h.needed
          and h.versions = array(select generate_series(1, i.version)))`,
    )
    expect(wrong).toEqual([])
  })

  it('of one instance are decided in the order they came', async () => {
    const { ac, count } = await opened()
    await Promise.all(Array.from({ length: 50 }, (_, note) => count('one', { note })))
    const history = await ac.workflows.history(counter, 'one')
    expect(history.map(({ payload }) => payload.note)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  it('that are rejected and remembered leave what is known of their instance as it is', async () => {
    const { ac, count, rows } = await opened()
    for (let round = 0; round < 3; round++) await Promise.all(ids(10).map((id) => count(id)))
    const refuse = (id: string) => ac.workflows.execute(counter, { id, refuses: true }, { inputId: `no ${id}` })
    const outcomes = await Promise.all(ids(20).map((id, n) => (n < 10 ? count(`new ${id}`) : refuse(`i${n - 10}`))))
    expect(outcomes.slice(10).map(({ outcome }) => outcome)).toEqual(Array(10).fill('rejected'))
    await Promise.all(ids(10).map((id) => count(id)))
    expect(await rows('workflow_instances', 'version = 4')).toBe(10)
  })

  it('leave out the one that cannot be decided', async () => {
    const { count, rows } = await opened()
    const results = await Promise.allSettled(ids(20).map((id, n) => count(id, { fails: n === 7 })))
    expect(results.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([7])
    expect(results[7]).toMatchObject({ reason: { message: 'a mistake in the workflow' } })
    expect(await rows('workflow_instances')).toBe(19)
  })

  it('are all written where the database refuses one of them', async () => {
    const { ac, count, rows, sql } = await opened()
    const refused = defineWorkflow({
      type: 'refused',
      id: ({ id }: { id: string }) => id,
      initial: () => 0,
      evolve: (state) => state,
      decide: () => accept([{ type: 'began' }]),
    })
    ac.workflows.register(refused)
    await sql.query(`select aftercommit.declare_stream('refused')`)
    const results = await Promise.allSettled([
      ...ids(10).map((id) => count(id)),
      ac.workflows.execute(refused, { id: 'a' }),
    ])
    expect(results.at(-1)).toMatchObject({ status: 'rejected', reason: { code: 'BAD_DEFINITION' } })
    expect(results.slice(0, -1).every(({ status }) => status === 'fulfilled')).toBe(true)
    expect(await rows('workflow_instances', 'version = 1')).toBe(10)
  })

  it('do not wait for an instance that a transaction holds elsewhere', async () => {
    const { ac, count, url, waiting } = await opened()
    const other = await connect(url)
    await other.query('begin')
    await other.query(`select aftercommit.workflow_load('counter', 'i3', true, 0, 0, 1)`)
    let isHeld = true
    const all = ids(10).map((id) => count(id))
    const held = all[3]!.then(() => expect(isHeld).toBe(false))
    await Promise.all(all.filter((_, n) => n !== 3))
    // Nor do those that come after.
    await Promise.all(ids(10).flatMap((id, n) => (n === 3 ? [] : [count(id)])))
    await eventually(async () => (await waiting()) === 1)
    isHeld = false
    await other.query('commit')
    await held
    expect(await ac.workflows.query(counter, 'i3')).toMatchObject({ version: 1 })
  })

  it('of many processes to the same instances neither wait for each other in a circle nor get lost', async () => {
    const { open, url, rows } = await opened()
    const processes = Array.from({ length: 3 }, () => open({ database: url }))
    for (const process of processes) process.workflows.register(counter)
    await Promise.all(
      processes.flatMap((process, n) => {
        const order = n % 2 === 0 ? ids(20) : ids(20).reverse()
        return [...order, ...order].map((id) => process.workflows.execute(counter, { id }))
      }),
    )
    expect(await rows('workflow_instances', 'version = 6')).toBe(20)
  })
})

it('what was remembered of a history that another took the place of is not used', async () => {
  const { ac, count, open, sql } = await opened()
  const noted = (id: string, notes: number[]) => Promise.all(notes.map((note) => count(id, { note })))
  await noted('a', [1, 2, 3])
  await noted('b', [1, 2, 3])
  // As after a restore that lost the last event of each.
  await sql.query(`delete from aftercommit.events where version = 3`)
  await sql.query(`update aftercommit.workflow_instances i set version = 2, last_position =
    (select max(position) from aftercommit.events e where e.aggregate_type = i.type and e.aggregate_id = i.id)`)
  const other = open()
  other.workflows.register(counter)
  await other.workflows.execute(counter, { id: 'a', note: 30 })
  for (const note of [30, 40]) await other.workflows.execute(counter, { id: 'b', note })
  for (const id of ['a', 'b']) await count(id, { note: 50 })
  const notes = async (id: string) => (await ac.workflows.history(counter, id)).map(({ payload }) => payload.note)
  expect([await notes('a'), await notes('b')]).toEqual([
    [1, 2, 30, 50],
    [1, 2, 30, 40, 50],
  ])
  // What the next decision sees is what the history says.
  expect(seen.get('a')).toEqual([1, 2, 30])
  expect(seen.get('b')).toEqual([1, 2, 30, 40])
})

it('effects that ended go with the inputs of others, and none is left', async () => {
  const { open, rows, sql } = await openWorkflows()
  const ac = open()
  const chain = defineWorkflow({
    type: 'chain',
    id: ({ id }: { id: string }) => id,
    initial: () => 0,
    evolve: (state) => state + 1,
    decide: (state, { id }) => accept([{ type: 'stepped' }], { effects: [{ type: state === 0 ? 'go' : 'end', id }] }),
  })
  let ended = 0
  ac.workflows.register(chain, { effects: { go: ({ id }) => ({ id }), end: () => void ended++ } })
  await ac.start()
  await Promise.all(ids(100).map((id) => ac.workflows.execute(chain, { id })))
  await eventually(() => ended === 100)
  await eventually(async () => (await rows('deliveries')) === 0)
  expect(await rows('workflow_instances', 'version = 2')).toBe(100)
  expect((await sql.query('select from aftercommit.letters')).rowCount).toBe(0)
})
