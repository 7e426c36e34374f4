/** What becomes of an event that a handler fails on: tries, dead letters, and the three policies. */
import type { AnyEvent } from '../log/index.ts'
import { GiveUp, RetryAfter } from '../subscriptions/index.ts'
import { nameOf, placed, QUICKLY } from './contract-events.ts'
import type { Scenario } from './subscriptions-contract.ts'

export const failureScenarios: readonly Scenario[] = [
  [
    'a failing handler is tried again, told which try it is, with the same key for all of them',
    async ({ bus, expect, until }) => {
      const tries: unknown[] = []
      bus.subscribe({
        id: 'flaky',
        retry: { ...QUICKLY, maxAttempts: 5 },
        handle({ id }, { attempt, idempotencyKey }) {
          tries.push([attempt, idempotencyKey === `flaky/${id}`])
          if (attempt < 3) throw new Error('not yet')
        },
      })
      await bus.start()
      const [emitted] = await bus.emit([placed('A', 1)])
      await until(async () => (await bus.subscriptions.get('flaky').status()).position >= emitted!.position)
      expect(tries).toEqual([
        [1, true],
        [2, true],
        [3, true],
      ])
      expect(await bus.deadLetters.count()).toEqual(0)
    },
  ],
  [
    'after the last try there is a dead letter that tells everything but secrets',
    async ({ bus, expect, until }) => {
      bus.subscribe({
        id: 'broken',
        retry: QUICKLY,
        handle() {
          throw Object.assign(new TypeError('cannot reach postgres://me:hunter2@db/shop'), { code: 'E_SHOP' })
        },
      })
      await bus.start()
      const [emitted] = await bus.emit([placed('A', 1)])
      await until(async () => (await bus.deadLetters.count()) === 1)
      const [letter] = await bus.deadLetters.list()
      const { kind, owner, key, attempts, status, waiting, event, error } = letter!
      expect({ kind, owner, key, attempts, status, waiting }).toEqual({
        kind: 'subscription',
        owner: 'broken',
        key: 'order/A',
        attempts: 2,
        status: 'dead',
        waiting: 0,
      })
      expect([event.id, event.position, event.payload]).toEqual([emitted!.id, emitted!.position, { n: 1 }])
      expect([error.name, error.code, error.stack]).toEqual(['TypeError', 'E_SHOP', undefined])
      expect([error.message.includes('cannot reach'), error.message.includes('hunter2')]).toEqual([true, false])
      expect(letter!.firstAttemptAt <= letter!.lastAttemptAt).toEqual(true)
      expect(await bus.deadLetters.show(letter!.id)).toEqual(letter)
    },
  ],
  [
    'a retry that says nothing else means three tries',
    async ({ bus, expect, until }) => {
      bus.subscribe({
        id: 'broken',
        retry: { initialDelay: '1ms' },
        handle() {
          throw new Error('no')
        },
      })
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(async () => (await bus.deadLetters.count()) === 1)
      expect((await bus.deadLetters.list())[0]!.attempts).toEqual(3)
    },
  ],
  [
    'GiveUp is a dead letter at once',
    async ({ bus, expect, until }) => {
      let calls = 0
      bus.subscribe({
        id: 'hopeless',
        retry: { ...QUICKLY, maxAttempts: 9 },
        handle() {
          calls++
          throw new GiveUp('the customer is gone')
        },
      })
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(async () => (await bus.deadLetters.count()) === 1)
      const [letter] = await bus.deadLetters.list()
      expect([calls, letter!.attempts, letter!.error.message]).toEqual([1, 1, 'the customer is gone'])
    },
  ],
  [
    'RetryAfter waits as long as it says instead of by the policy, and counts as a try',
    async ({ bus, expect, until }) => {
      const attempts: number[] = []
      bus.subscribe({
        id: 'later',
        retry: { maxAttempts: 3, initialDelay: '1h', maxDelay: '1h' },
        handle(_, { attempt }) {
          attempts.push(attempt)
          throw new RetryAfter('1ms')
        },
      })
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(async () => (await bus.deadLetters.count()) === 1)
      expect(attempts).toEqual([1, 2, 3])
    },
  ],
  [
    'a deadlock in the handler is not a try',
    async ({ bus, expect, until }) => {
      const attempts: number[] = []
      bus.subscribe({
        id: 'unlucky',
        retry: { maxAttempts: 1 },
        handle(_, { attempt }) {
          attempts.push(attempt)
          if (attempts.length < 3) throw Object.assign(new Error('deadlock detected'), { code: '40P01' })
        },
      })
      await bus.start()
      const [emitted] = await bus.emit([placed('A', 1)])
      await until(async () => (await bus.subscriptions.get('unlucky').status()).position >= emitted!.position)
      expect(attempts).toEqual([1, 1, 1])
      expect(await bus.deadLetters.count()).toEqual(0)
    },
  ],
  [
    'a key that cannot be computed is a failure of that event',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({
        id: 'keyed',
        retry: QUICKLY,
        key(event) {
          if (nameOf(event) === 'A1') throw new Error('no key for this')
          return 'one'
        },
        handle: (event) => seen.push(nameOf(event)),
      })
      await bus.start()
      await bus.emit([placed('A', 1), placed('B', 2)])
      await until(async () => seen.length === 1 && (await bus.deadLetters.count()) === 1)
      expect([seen, (await bus.deadLetters.list())[0]!.error.message]).toEqual([['B2'], 'no key for this'])
    },
  ],
  [
    'skip: later events of the same key are handled, and the letter can still be tried again',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      let broken = true
      bus.subscribe({ id: 'skipping', onFailure: 'skip', retry: QUICKLY, handle: failOn('A1', seen, () => broken) })
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2), placed('A', 3)])
      await until(() => seen.length === 2)
      expect(seen).toEqual(['A2', 'A3'])
      broken = false
      expect(await bus.deadLetters.redrive({ owner: 'skipping' })).toEqual(1)
      await until(() => seen.length === 3)
      await until(async () => (await bus.deadLetters.count({ status: 'resolved' })) === 1)
      expect(seen).toEqual(['A2', 'A3', 'A1'])
    },
  ],
  [
    'stop: everything waits behind the event, in order, until somebody resumes',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      let broken = true
      const handle = bus.subscribe({
        id: 'strict',
        onFailure: 'stop',
        retry: QUICKLY,
        handle: failOn('A2', seen, () => broken),
      })
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2), placed('B', 3)])
      await until(async () => (await handle.status()).status === 'stopped')
      await bus.emit([placed('C', 4)])
      expect([seen, await bus.deadLetters.count()]).toEqual([['A1'], 0])
      expect((await handle.status()).reason?.includes('A2 fails')).toEqual(true)
      broken = false
      await handle.resume()
      await until(() => seen.length >= 4)
      expect(seen).toEqual(['A1', 'A2', 'B3', 'C4'])
    },
  ],
  [
    'stop holds for batches as well: nothing behind the failing event is handled',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      let broken = true
      const handle = bus.subscribe({
        id: 'strict',
        onFailure: 'stop',
        retry: QUICKLY,
        handleBatch: failBatchOn('A2', seen, () => broken),
      })
      await bus.emit([placed('A', 1), placed('A', 2), placed('B', 3), placed('C', 4), placed('D', 5), placed('E', 6)])
      await bus.start()
      await until(async () => (await handle.status()).status === 'stopped')
      expect(seen).toEqual(['A1'])
      broken = false
      await handle.resume()
      await until(() => seen.length >= 6)
      expect(seen).toEqual(['A1', 'A2', 'B3', 'C4', 'D5', 'E6'])
    },
  ],
  [
    'an event that is not authorised, or names no user, never reaches the handler, is a dead letter at once, and parks nothing',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({
        id: 'guarded',
        authorize: async (event, { subscription }) => subscription === 'guarded' && nameOf(event) !== 'A1',
        handle: (event) => seen.push(nameOf(event)),
      })
      await bus.start()
      const user = { metadata: { userId: 'ada' } }
      await bus.emit([{ ...placed('A', 1), ...user }, { ...placed('A', 2), ...user }, placed('A', 3)])
      await until(() => seen.length > 0)
      await until(async () => (await bus.deadLetters.list()).length === 2)
      const letters = await bus.deadLetters.list()
      expect(seen).toEqual(['A2'])
      // The last one names no user, so nobody was asked about it.
      expect(letters.map(({ error, attempts, event }) => [error.code, attempts, nameOf(event)])).toEqual([
        ['UNAUTHORIZED', 1, 'A3'],
        ['UNAUTHORIZED', 1, 'A1'],
      ])
    },
  ],
  [
    'a failing batch is halved until the poison is alone: it alone becomes a letter, and its key waits behind it',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({ id: 'batches', retry: QUICKLY, handleBatch: failBatchOn('A3', seen, () => true) })
      const orders = ['B', 'C', 'A', 'B', 'A', 'C', 'D', 'B']
      await bus.emit(orders.map((order, i) => placed(order, i + 1)))
      await bus.start()
      await until(async () => seen.length >= 6 && (await bus.deadLetters.list())[0]?.waiting === 1)
      const [letter] = await bus.deadLetters.list()
      expect([nameOf(letter!.event), letter!.attempts, letter!.waiting]).toEqual(['A3', 2, 1])
      expect([...seen].sort()).toEqual(['B1', 'B4', 'B8', 'C2', 'C6', 'D7'])
      expect(seen.filter((name) => name[0] === 'B')).toEqual(['B1', 'B4', 'B8'])
    },
  ],
  [
    'a handler that is broken for everybody parks a few keys, holds the rest, and makes up for all of it when mended',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      let broken = true
      const handle = bus.subscribe({
        id: 'deployed',
        failingAfter: 2,
        retry: { ...QUICKLY, maxAttempts: 1 },
        handle(event) {
          if (broken) throw new Error('bad deploy')
          seen.push(nameOf(event))
        },
      })
      await bus.start()
      await bus.emit(['A', 'B', 'C', 'D', 'A'].map((order, i) => placed(order, i + 1)))
      await until(async () => (await handle.status()).status === 'failing')
      expect(await bus.deadLetters.count({ status: 'dead' })).toEqual(2)
      broken = false
      await bus.emit([placed('E', 6)])
      await until(() => seen.length >= 6)
      await until(async () => (await handle.status()).status === 'active')
      expect([...seen].sort()).toEqual(['A1', 'A5', 'B2', 'C3', 'D4', 'E6'])
      expect(seen.filter((name) => name[0] === 'A')).toEqual(['A1', 'A5'])
      await until(async () => (await bus.deadLetters.count({ status: 'resolved' })) === 2)
    },
  ],
]

/** A handler that records names, and fails on one of them. */
function failOn(poison: string, seen: string[], broken: () => boolean): (event: AnyEvent) => void {
  return (event) => {
    if (nameOf(event) === poison && broken()) throw new Error(`${poison} fails`)
    seen.push(nameOf(event))
  }
}

function failBatchOn(poison: string, seen: string[], broken: () => boolean): (events: readonly AnyEvent[]) => void {
  return (events) => {
    if (broken() && events.some((event) => nameOf(event) === poison)) throw new Error(`${poison} fails`)
    seen.push(...events.map(nameOf))
  }
}
