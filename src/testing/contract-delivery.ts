/** What handlers may rely on while nothing fails: who gets which events, in which order, from where. */
import type { AnyEvent } from '../log/index.ts'
import { nameOf, placed, QUICKLY } from './contract-events.ts'
import type { Scenario } from './subscriptions-contract.ts'

export const deliveryScenarios: readonly Scenario[] = [
  [
    'events are handled in the order they were emitted, each once',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'all', handle: (event) => seen.push(nameOf(event)) })
      await bus.start()
      const expected: string[] = []
      for (let n = 1; n <= 30; n++) {
        await bus.emit([placed(n % 2 ? 'A' : 'B', n)])
        expected.push(`${n % 2 ? 'A' : 'B'}${n}`)
      }
      await until(() => seen.length >= 30)
      expect(seen).toEqual(expected)
    },
  ],
  [
    'what a handler does to its event, nobody else sees: not the next try, not another subscription, not the letter',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      const spoil = (event: AnyEvent) => {
        Object.assign(event.payload as object, { n: 99 })
        Object.assign(event.metadata, { correlationId: 'spoilt' })
        event.occurredAt.setTime(0)
      }
      const note = (who: string, event: AnyEvent) =>
        seen.push(`${who} ${nameOf(event)} ${event.metadata.correlationId} ${event.occurredAt.getTime() > 0}`)
      bus.subscribe({
        id: 'spoiler',
        key: (event) => {
          spoil(event)
          return event.key
        },
        retry: QUICKLY,
        handle: (event) => {
          note('spoiler', event)
          spoil(event)
          throw new Error('spoilt')
        },
      })
      bus.subscribe({ id: 'witness', handle: (event) => note('witness', event) })
      await bus.start()
      await bus.emit([{ ...placed('A', 1), metadata: { correlationId: 'whole' } }])
      await until(async () => seen.length >= 3 && (await bus.deadLetters.count()) === 1)
      const [letter] = await bus.deadLetters.list()
      note('letter', letter!.event)
      const expected = ['letter', 'spoiler', 'spoiler', 'witness'].map((who) => `${who} A1 whole true`)
      expect([...seen].sort()).toEqual(expected)
    },
  ],
  [
    'a handler gets the whole event and is told who it is',
    async ({ bus, expect, until }) => {
      const seen: unknown[] = []
      bus.subscribe({
        id: 'one',
        handle: (event, { subscription, attempt, redriven, idempotencyKey, signal }) =>
          seen.push(fieldsOf(event), [subscription, attempt, redriven, idempotencyKey, signal.aborted]),
      })
      await bus.start()
      const occurredAt = new Date('2026-02-03T04:05:06.789Z')
      const given = { payload: { total: 12.5, lines: [{ sku: 'x' }] }, tenant: 'north', id: 'evt-1', occurredAt }
      const history = { changes: { total: { old: 1, new: 12.5 } }, previous: { total: 1 } }
      const metadata = { correlationId: 'req-123', causationId: 'evt-0', userId: 'user-456', source: 'web' }
      const { position } = await bus.emit('order.placed', {
        ...given,
        ...history,
        metadata,
        aggregate: { type: 'order', id: '42' },
      })
      await until(() => seen.length === 2)
      expect(seen).toEqual([
        {
          id: 'evt-1',
          type: 'order.placed',
          position,
          aggregate: ['order', '42', null],
          payload: given.payload,
          ...history,
          tenant: 'north',
          chain: ['req-123', 'evt-0', 'user-456', 'web'],
          occurredAt,
        },
        ['one', 1, false, 'one/evt-1', false],
      ])
    },
  ],
  [
    'a subscription sees the types it asks for: one, several, or a pattern',
    async ({ bus, expect, until }) => {
      const seen: Record<string, string[]> = { one: [], several: [], pattern: [], all: [] }
      const record = (id: string) => (event: AnyEvent) => seen[id]!.push(event.type)
      bus.subscribe({ id: 'one', on: ['order.paid'], handle: record('one') })
      bus.subscribe({ id: 'several', on: ['order.placed', 'invoice.sent'], handle: record('several') })
      bus.subscribe({ id: 'pattern', on: ['order.*'], handle: record('pattern') })
      bus.subscribe({ id: 'all', handle: record('all') })
      await bus.start()
      const types = ['order.placed', 'order.paid', 'order.shipped', 'invoice.sent']
      for (const type of types) await bus.emit(type, { payload: null })
      await until(() => [1, 2, 3, 4].every((count, i) => Object.values(seen)[i]!.length >= count))
      expect(seen).toEqual({
        one: ['order.paid'],
        several: ['order.placed', 'invoice.sent'],
        pattern: ['order.placed', 'order.paid', 'order.shipped'],
        all: types,
      })
    },
  ],
  [
    'a subscription of one tenant never sees another, nor what belongs to nobody',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'north', tenant: 'north', handle: (event) => seen.push(nameOf(event)) })
      await bus.start()
      const [south, nobody, north] = [placed('S', 1), placed('N', 2), placed('N', 3)]
      await bus.emit([{ ...south, tenant: 'south' }, nobody, { ...north, tenant: 'north' }])
      await until(() => seen.length > 0)
      expect(seen).toEqual(['N3'])
    },
  ],
  [
    'every subscription of a type gets the event, also when one of them always fails',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'first', handle: () => seen.push('first') })
      bus.subscribe({
        id: 'broken',
        retry: { maxAttempts: 1 },
        handle() {
          throw new Error('no')
        },
      })
      bus.subscribe({ id: 'third', handle: () => seen.push('third') })
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(async () => seen.length === 2 && (await bus.deadLetters.count({ owner: 'broken' })) === 1)
      expect([...seen].sort()).toEqual(['first', 'third'])
    },
  ],
  [
    'a new subscription gets history; one that begins at the head does not; what is emitted meanwhile reaches both once',
    async ({ bus, expect, until }) => {
      const history: string[] = []
      const head: string[] = []
      for (let n = 1; n <= 20; n++) await bus.emit([placed('A', n)])
      bus.subscribe({ id: 'history', handle: (event) => history.push(nameOf(event)) })
      bus.subscribe({ id: 'head', from: 'head', handle: (event) => head.push(nameOf(event)) })
      await bus.start()
      for (let n = 21; n <= 40; n++) await bus.emit([placed('A', n)])
      await until(() => history.length >= 40 && head.length >= 20)
      expect(history).toEqual(Array.from({ length: 40 }, (_, i) => `A${i + 1}`))
      expect(head).toEqual(Array.from({ length: 20 }, (_, i) => `A${i + 21}`))
    },
  ],
  [
    'after a restart each subscription goes on from its own checkpoint',
    async ({ bus, expect, until }) => {
      const seen: Record<string, string[]> = { fast: [], paused: [] }
      const record = (id: string) => ({ id, handle: (event: AnyEvent) => seen[id]!.push(nameOf(event)) })
      bus.subscribe(record('fast'))
      const paused = bus.subscribe(record('paused'))
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(() => seen.fast!.length === 1 && seen.paused!.length === 1)
      await paused.pause()
      await bus.emit([placed('A', 2)])
      await until(() => seen.fast!.length === 2)
      const again = await bus.restart()
      try {
        again.subscribe(record('fast'))
        const resumed = again.subscribe(record('paused'))
        await again.start()
        await resumed.resume()
        await again.emit([placed('A', 3)])
        await until(() => seen.fast!.length >= 3 && seen.paused!.length >= 3)
      } finally {
        await again.stop()
      }
      expect(seen).toEqual({ fast: ['A1', 'A2', 'A3'], paused: ['A1', 'A2', 'A3'] })
    },
  ],
  [
    'a seek back handles again what lies between, and says beforehand how much that is',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      const handle = bus.subscribe({ id: 'all', handle: (event) => seen.push(nameOf(event)) })
      await bus.start()
      const [first, , last] = await bus.emit([placed('A', 1), placed('A', 2), placed('A', 3)])
      await until(async () => (await handle.status()).position >= last!.position)
      const { events, direction } = await handle.seek(first!.position)
      expect([events, direction]).toEqual([2, 'back'])
      await until(() => seen.length >= 5)
      expect(seen).toEqual(['A1', 'A2', 'A3', 'A2', 'A3'])
    },
  ],
  [
    'a subscription never passes the ones it comes after',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'mailer', after: ['projection'], handle: (event) => seen.push(`mailer ${nameOf(event)}`) })
      bus.subscribe({ id: 'projection', handle: (event) => seen.push(`projection ${nameOf(event)}`) })
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2)])
      await until(() => seen.length === 4)
      for (const name of ['A1', 'A2']) {
        expect(seen.indexOf(`projection ${name}`) < seen.indexOf(`mailer ${name}`)).toEqual(true)
      }
    },
  ],
  [
    'batches hold what there is, in order, and no more than asked for',
    async ({ bus, expect, until }) => {
      const batches: string[][] = []
      bus.subscribe({ id: 'batches', batchSize: 4, handleBatch: (events) => batches.push(events.map(nameOf)) })
      await bus.emit(Array.from({ length: 10 }, (_, i) => placed('A', i + 1)))
      await bus.start()
      await bus.emit([placed('A', 11)])
      await until(() => batches.flat().length >= 11)
      expect(batches.flat()).toEqual(Array.from({ length: 11 }, (_, i) => `A${i + 1}`))
      expect(batches.every(({ length }) => length <= 4)).toEqual(true)
      expect(batches[0]!.length > 1).toEqual(true)
    },
  ],
  [
    'lanes keep the order of each key',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      const record = async (event: AnyEvent) => {
        await Promise.resolve()
        seen.push(nameOf(event))
      }
      bus.subscribe({ id: 'lanes', concurrency: 4, handle: record })
      await bus.start()
      await bus.emit(Array.from({ length: 24 }, (_, i) => placed('ABC'[i % 3]!, i)))
      await until(() => seen.length >= 24)
      for (const order of 'ABC') {
        const numbers = seen.filter((name) => name[0] === order).map((name) => Number(name.slice(1)))
        expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
      }
      expect(new Set(seen).size).toEqual(24)
    },
  ],
  [
    'an id is registered once',
    async ({ bus, expect }) => {
      bus.subscribe({ id: 'twin', handle: () => {} })
      let refused = ''
      try {
        bus.subscribe({ id: 'twin', handle: () => {} })
      } catch (error) {
        refused = (error as { code: string }).code
      }
      expect(refused).toEqual('BAD_OPTION')
    },
  ],
]

function fieldsOf(event: AnyEvent) {
  const { id, type, position, payload, changes, previous, tenant, occurredAt, metadata } = event
  const aggregate = [event.aggregateType, event.aggregateId, event.version]
  const chain = [metadata.correlationId, metadata.causationId, metadata.userId, metadata.source]
  return { id, type, position, aggregate, payload, changes, previous, tenant, chain, occurredAt }
}
