/** `drain()` alone, as in a serverless function: what was redriven, and what waited behind it, is done before it says so. */
import { expect, it } from 'vitest'
import { type Aftercommit, accept, defineWorkflow, GiveUp, memorySink } from '../../src/index.ts'
import { openSubscriptions } from './support/open-subscriptions.ts'

const ROUNDS = 5
const ONCE = { maxAttempts: 1 } as const

it('a dead letter that was redriven and the events parked behind it are handled by the next drain', async () => {
  const { another, emit, sql } = await openSubscriptions()
  const handled: string[] = []
  let isBroken = true
  const open = () => {
    const ac = another()
    ac.subscribe({
      id: 'mail',
      retry: ONCE,
      handle({ id }) {
        if (isBroken && id.startsWith('bad')) throw new GiveUp('broken')
        handled.push(id)
      },
    })
    return ac
  }
  for (let round = 0; round < ROUNDS; round++) {
    isBroken = true
    const key = `lamp-${round}`
    const waiting = [1, 2, 3].map((n) => `behind-${round}-${n}`)
    await emit(`bad-${round}`, { key })
    for (const id of waiting) await emit(id, { key })
    const ac = open()
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect((await sql.query('select from aftercommit.parked')).rowCount).toBe(waiting.length)
    isBroken = false
    await ac.deadLetters.redrive({ owner: 'mail' })
    await ac.stop()
    handled.length = 0
    expect(await open().drain()).toMatchObject({ drained: true })
    expect(handled).toEqual([`bad-${round}`, ...waiting])
    expect((await sql.query('select from aftercommit.parked')).rowCount).toBe(0)
  }
})

it('a dead letter that was discarded lets go what is parked behind it in the next drain', async () => {
  const { another, emit, sql } = await openSubscriptions()
  const handled: string[] = []
  const open = () => {
    const ac = another()
    ac.subscribe({
      id: 'mail',
      retry: ONCE,
      handle({ id }) {
        if (id === 'bad') throw new GiveUp('broken')
        handled.push(id)
      },
    })
    return ac
  }
  await emit('bad', { key: 'a' })
  await emit('behind', { key: 'a' })
  const ac = open()
  // What waits behind a dead letter is not to be done: it does not keep a drain from its end.
  expect(await ac.drain()).toMatchObject({ drained: true })
  expect(handled).toEqual([])
  await ac.deadLetters.discard({ owner: 'mail' })
  await ac.stop()
  expect(await open().drain()).toMatchObject({ drained: true })
  expect(handled).toEqual(['behind'])
  expect((await sql.query('select from aftercommit.parked')).rowCount).toBe(0)
})

it('events parked behind a message that a sink refused are published by the next drain after a redrive', async () => {
  const { another, emit, sql } = await openSubscriptions()
  const open = () => {
    const [ac, sink] = [another(), memorySink()]
    ac.relay({ id: 'bus', to: sink, retry: ONCE })
    return { ac, sink }
  }
  for (let round = 0; round < ROUNDS; round++) {
    const key = `lamp-${round}`
    await emit(`good-${round}`, { key: 'another' })
    await emit(`bad-${round}`, { key })
    await emit(`behind-${round}`, { key })
    const { ac, sink } = open()
    sink.refuse(({ id }) => id.startsWith('bad'), new GiveUp('refused'))
    expect(await ac.drain()).toMatchObject({ drained: true })
    await ac.deadLetters.redrive({ owner: 'bus' })
    await ac.stop()
    const next = open()
    expect(await next.ac.drain()).toMatchObject({ drained: true })
    expect(next.sink.messages.map(({ id }) => id)).toEqual([`bad-${round}`, `behind-${round}`])
    expect((await sql.query('select from aftercommit.parked')).rowCount).toBe(0)
  }
})

it('a delivery that was redriven from its dead letter is done by the next drain', async () => {
  const { another } = await openSubscriptions()
  const done: string[] = []
  let isBroken = true
  const order = defineWorkflow({
    type: 'order',
    id: ({ id }: { id: string }) => id,
    initial: () => 0,
    evolve: (count, _event: { type: 'placed' }) => count + 1,
    decide: () => accept([{ type: 'placed' }], { effects: [{ type: 'charge' as const }] }),
  })
  const open = (): Aftercommit => {
    const ac = another()
    ac.workflows.register(order, {
      effects: {
        charge(_, { workflow }) {
          if (isBroken) throw new GiveUp('broken')
          done.push(workflow.id)
        },
      },
    })
    return ac
  }
  for (let round = 0; round < ROUNDS; round++) {
    isBroken = true
    const ac = open()
    await ac.workflows.execute(order, { id: `order-${round}` })
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(await ac.deadLetters.count({ status: 'dead' })).toBe(1)
    isBroken = false
    await ac.deadLetters.redrive({ owner: 'order' })
    await ac.stop()
    expect(await open().drain()).toMatchObject({ drained: true })
    expect(done.at(-1)).toBe(`order-${round}`)
  }
})
