/** What emitting promises, whoever handles: all or nothing, chosen ids, streams, chains of causes. */
import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import { nameOf, placed, QUICKLY } from './contract-events.ts'
import type { Scenario } from './subscriptions-contract.ts'

export const emittingScenarios: readonly Scenario[] = [
  [
    'a batch with one bad event emits none of them, and says so to the caller',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'all', handle: (event) => seen.push(event.type) })
      await bus.start()
      const batch = [placed('A', 1), { type: 'amount.counted', payload: -1 }, placed('A', 2)]
      expect(await codeOf(bus.emit(batch))).toEqual('INVALID_PAYLOAD')
      await bus.emit('invoice.sent', { payload: null })
      await until(() => seen.includes('invoice.sent'))
      expect(seen).toEqual(['invoice.sent'])
    },
  ],
  [
    'a batch answers in its own order, and is handled in it',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'all', handle: (event) => seen.push(nameOf(event)) })
      await bus.start()
      const emitted = await bus.emit([placed('A', 1), placed('B', 2), placed('C', 3)])
      const positions = emitted.map(({ position }) => position)
      expect(positions).toEqual([...positions].sort((a, b) => (a < b ? -1 : 1)))
      await until(() => seen.length === 3)
      expect(seen).toEqual(['A1', 'B2', 'C3'])
    },
  ],
  [
    'a transaction that fails emits nothing; one that succeeds emits everything',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'all', handle: (event) => seen.push(nameOf(event)) })
      await bus.start()
      const failed = bus.transaction(async (tx) => {
        await tx.emit([placed('A', 1)])
        throw new Error('changed my mind')
      })
      expect(await failed.catch((error: Error) => error.message)).toEqual('changed my mind')
      await bus.transaction(async (tx) => {
        await tx.emit([placed('A', 2)])
        await tx.emit([placed('A', 3)])
      })
      await until(() => seen.length >= 2)
      expect(seen).toEqual(['A2', 'A3'])
    },
  ],
  [
    'an id that was chosen and emitted before is not emitted again, and answers with the first place',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'all', handle: (event) => seen.push(nameOf(event)) })
      await bus.start()
      const first = await bus.emit([{ ...placed('A', 1), id: 'request-7' }])
      const second = await bus.emit([{ ...placed('A', 1), id: 'request-7' }])
      expect(second).toEqual(first)
      expect(await codeOf(bus.emit([{ ...placed('A', 7), id: 'request-7' }]))).toEqual('EVENT_ID_TAKEN')
      await bus.emit([placed('A', 2)])
      await until(() => seen.includes('A2'))
      expect(seen).toEqual(['A1', 'A2'])
    },
  ],
  [
    'a stream is numbered, and refuses whoever expects another version',
    async ({ bus, expect }) => {
      const account = { aggregate: { type: 'account', id: '7' }, payload: { n: 1 } }
      const first = await bus.emit('order.placed', { ...account, expectedVersion: 0 })
      const second = await bus.emit('order.paid', account)
      expect([first.version, second.version]).toEqual([1, 2])
      expect(await codeOf(bus.emit('order.paid', { ...account, expectedVersion: 1 }))).toEqual('VERSION_CONFLICT')
      const both = [
        { ...account, type: 'order.paid', expectedVersion: 2 },
        { ...account, type: 'order.paid', expectedVersion: 2 },
      ]
      expect(await codeOf(bus.emit(both))).toEqual('VERSION_CONFLICT')
      expect((await bus.emit('order.paid', { ...account, expectedVersion: 2 })).version).toEqual(3)
    },
  ],
  [
    'an expected version is refused where there are no streams',
    async ({ bus, expect }) => {
      expect(await codeOf(bus.emit('order.placed', { ...placed('A', 1), expectedVersion: 0 }))).toEqual('NOT_A_STREAM')
    },
  ],
  [
    'what a handler emits carries the chain on: one correlation, its cause, one deeper',
    async ({ bus, expect, until }) => {
      const seen: AnyEvent[] = []
      const next: Record<string, string> = { 'order.placed': 'order.paid', 'order.paid': 'order.shipped' }
      bus.subscribe({
        id: 'chain',
        async handle(event) {
          seen.push(event)
          const type = next[event.type]
          if (type) await bus.emit(type, { payload: null })
        },
      })
      await bus.start()
      await bus.emit('order.placed', { payload: null, tenant: 'north', metadata: { userId: 'u1' } })
      await until(() => seen.length === 3)
      const [first, second, third] = seen.map(({ id }) => id)
      expect(seen.map(({ metadata }) => metadata.correlationId)).toEqual([first, first, first])
      expect(seen.map(({ metadata }) => metadata.causationId)).toEqual([null, first, second])
      expect(seen.map(({ metadata }) => metadata.depth)).toEqual([0, 1, 2])
      expect(seen.map(({ metadata, tenant }) => [metadata.userId, tenant])).toEqual([
        ['u1', 'north'],
        ['u1', 'north'],
        ['u1', 'north'],
      ])
      expect(new Set([first, second, third]).size).toEqual(3)
    },
  ],
  [
    'an event that causes itself ends as one dead letter',
    async ({ bus, expect, until }) => {
      let calls = 0
      bus.subscribe({
        id: 'loop',
        retry: QUICKLY,
        async handle() {
          calls++
          await bus.emit('order.placed', { payload: null })
        },
      })
      await bus.start()
      await bus.emit('order.placed', { payload: null })
      await until(async () => (await bus.deadLetters.count()) > 0)
      const [letter] = await bus.deadLetters.list()
      expect([letter?.error.code, letter?.attempts, calls]).toEqual(['TOO_DEEP', 1, 33])
    },
  ],
  [
    'with `transactional`, what the handler emits through its transaction is emitted once, by the try that succeeded',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({
        id: 'emitter',
        on: ['order.placed'],
        transactional: true,
        retry: QUICKLY,
        async handle(_, { tx, attempt }) {
          await (tx as { emit: typeof bus.emit }).emit('order.paid', { payload: { attempt } })
          if (attempt === 1) throw new Error('not yet')
        },
      })
      bus.subscribe({
        id: 'reader',
        on: ['order.paid', 'invoice.*'],
        handle: (event) => seen.push(JSON.stringify(event.payload)),
      })
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(() => seen.length > 0)
      await bus.emit('invoice.sent', { payload: 'last' })
      await until(() => seen.includes('"last"'))
      expect(seen).toEqual(['{"attempt":2}', '"last"'])
    },
  ],
]

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'it succeeded'
  } catch (error) {
    return error instanceof AftercommitError ? error.code : String(error)
  }
}
