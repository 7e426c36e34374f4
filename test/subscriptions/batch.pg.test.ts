/** `handleBatch`: events in pages, a failing batch halved to the event that fails, order per key all the while. */
import { describe, expect, it } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { eventually } from '../support/eventually.ts'
import { gate, numbered, openSubscriptions, QUICK } from './support/open-subscriptions.ts'

describe('batches', () => {
  it('hold what matches, in order, no more than asked for, and each event once', async () => {
    const { ac, emitMany, emit } = await openSubscriptions()
    await emitMany(250)
    await emit('door', { type: 'door.opened' })
    await emitMany(5, { prefix: 'more-' })
    const batches: string[][] = []
    ac.subscribe({
      id: 'sub',
      on: ['lamp.*'],
      batchSize: 40,
      handleBatch: (events) => void batches.push(events.map(({ id }) => id)),
    })
    await ac.drain()
    expect(batches.flat()).toEqual([...numbered(250), ...numbered(5, 'more-')])
    expect(Math.max(...batches.map((batch) => batch.length))).toBe(40)
  })

  it('that fail are halved to the poison event; everything else is handled and its key is parked', async () => {
    const { ac, emitMany } = await openSubscriptions()
    await emitMany(64, { keys: 64 })
    const handled: string[] = []
    ac.subscribe({
      id: 'sub',
      retry: QUICK,
      handleBatch: (events) => {
        if (events.some(({ id }) => id === 'event-23')) throw new Error('poison inside')
        handled.push(...events.map(({ id }) => id))
      },
    })
    await ac.drain()
    expect(handled).toEqual(numbered(64).filter((id) => id !== 'event-23'))
    const letters = await ac.deadLetters.list()
    expect(letters.map(({ event, attempts }) => [event.id, attempts])).toEqual([['event-23', 4]])
  })

  it('keep the order of a key whose event waits for its next try', async () => {
    const { ac, emitMany } = await openSubscriptions()
    await emitMany(32, { keys: 2 })
    const handled: { id: string; key: string; position: bigint }[] = []
    let failures = 0
    ac.subscribe({
      id: 'sub',
      retry: QUICK,
      handleBatch: (events) => {
        if (events.some(({ id }) => id === 'event-1') && failures++ < 8) throw new Error('not yet')
        handled.push(...events.map(({ id, key, position }) => ({ id, key, position })))
      },
    })
    await ac.drain()
    expect(handled.map(({ id }) => id).sort()).toEqual(numbered(32).sort())
    for (const key of new Set(handled.map((call) => call.key))) {
      const positions = handled.filter((call) => call.key === key).map(({ position }) => position)
      expect(positions).toEqual([...positions].sort((a, b) => (a < b ? -1 : 1)))
    }
  })

  it('give no event of a parked key to the handler, not even from the other half', async () => {
    const { ac, emitMany } = await openSubscriptions()
    await emitMany(32, { keys: 2 })
    const handled: string[] = []
    ac.subscribe({
      id: 'sub',
      handleBatch: (events) => {
        if (events.some(({ id }) => id === 'event-1')) throw new GiveUp('never')
        handled.push(...events.map(({ id }) => id))
      },
    })
    await ac.drain()
    expect(handled).toEqual(numbered(32).filter((_, i) => i % 2 === 1))
    expect((await ac.deadLetters.list())[0]).toMatchObject({ waiting: 15 })
  })

  it('in a transaction write everything or nothing, with the checkpoint', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    await sql.query('create table effects (event_id text)')
    await emitMany(50, { keys: 50 })
    let first = true
    ac.subscribe({
      id: 'sub',
      transactional: true,
      retry: QUICK,
      handleBatch: async (events, { tx }) => {
        for (const { id } of events) await tx.query('insert into effects values ($1)', [id])
        if (first) {
          first = false
          throw new Error('after all of it')
        }
      },
    })
    await ac.drain()
    const { rows } = await sql.query('select event_id from effects')
    expect(rows.map(({ event_id }) => event_id).sort()).toEqual(numbered(50).sort())
  })

  it('that take too long are told, and their events are tried alone', async () => {
    const { ac, emitMany } = await openSubscriptions()
    await emitMany(4, { keys: 4 })
    const never = gate()
    const handled: string[] = []
    let told = false
    ac.subscribe({
      id: 'sub',
      timeout: '100ms',
      retry: QUICK,
      handleBatch: async (events, { signal }) => {
        if (events.length > 2) {
          signal.addEventListener('abort', () => {
            told = true
            never.open()
          })
          await never.passed
          throw signal.reason
        }
        handled.push(...events.map(({ id }) => id))
      },
    })
    await ac.start()
    await eventually(() => handled.length === 4)
    expect(told).toBe(true)
    expect(handled).toEqual(numbered(4))
  })
})
