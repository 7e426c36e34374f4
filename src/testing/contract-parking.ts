/** Dead letters that hold their key: what waits, and in which order it follows when somebody redrives or gives up. */
import type { AnyEvent } from '../log/index.ts'
import { RetryAfter } from '../subscriptions/index.ts'
import { nameOf, placed, QUICKLY } from './contract-events.ts'
import type { Scenario, SubscriptionsUnderTest } from './subscriptions-contract.ts'

export const parkingScenarios: readonly Scenario[] = [
  [
    'park: later events of the key wait, all others flow; redriven, they follow in order, and the key is free',
    async ({ bus, expect, until }) => {
      const { seen, poison } = subscribe(bus, 'A1')
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2), placed('B', 3), placed('A', 4), placed('B', 5)])
      await until(async () => seen.length === 2 && (await letterOf(bus, 'A1'))?.waiting === 2)
      expect(seen).toEqual(['B3', 'B5'])
      poison.clear()
      expect(await bus.deadLetters.redrive((await letterOf(bus, 'A1'))!.id, { who: 'kim', reason: 'mended' })).toEqual(
        1,
      )
      await until(async () => seen.length >= 5 && (await isDone(bus, 'A1', 'resolved')))
      await bus.emit([placed('A', 6)])
      await until(() => seen.length >= 6)
      expect(seen).toEqual(['B3', 'B5', 'A1!', 'A2!', 'A4!', 'A6'])
      const letter = await letterOf(bus, 'A1')
      expect([letter!.who, letter!.reason]).toEqual(['kim', 'mended'])
    },
  ],
  [
    'what arrives while a letter is being redriven stays behind what waits already',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      let broken = true
      bus.subscribe({
        id: 'parking',
        retry: QUICKLY,
        async handle(event, { attempt, redriven }) {
          if (nameOf(event) === 'A1' && broken) throw new Error('broken')
          if (nameOf(event) === 'A1' && redriven && attempt === 1) {
            await bus.emit([placed('A', 3), placed('B', 4)])
            throw new RetryAfter('100ms')
          }
          seen.push(nameOf(event))
        },
      })
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2)])
      await until(async () => (await letterOf(bus, 'A1'))?.waiting === 1)
      broken = false
      await bus.deadLetters.redrive({ key: 'order/A' })
      await until(() => seen.length >= 4)
      expect(seen.filter((name) => name[0] === 'A')).toEqual(['A1', 'A2', 'A3'])
    },
  ],
  [
    'a letter that fails again is dead again, with all its attempts, and what waits goes on waiting',
    async ({ bus, expect, until }) => {
      const { seen } = subscribe(bus, 'A1')
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2)])
      await until(async () => (await letterOf(bus, 'A1'))?.waiting === 1)
      await bus.deadLetters.redrive({ owner: 'parking' })
      await until(async () => (await letterOf(bus, 'A1'))?.attempts === 4)
      const letter = await letterOf(bus, 'A1')
      expect([letter!.status, letter!.waiting, seen]).toEqual(['dead', 1, []])
      expect(await bus.deadLetters.count()).toEqual(1)
    },
  ],
  [
    'a waiting event that fails in turn is a letter of its own, and the rest waits behind that',
    async ({ bus, expect, until }) => {
      const { seen, poison } = subscribe(bus, 'A1', 'A2', 'X9')
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2), placed('A', 3), placed('X', 9)])
      await until(async () => (await letterOf(bus, 'A1'))?.waiting === 2 && (await letterOf(bus, 'X9')) !== undefined)
      poison.delete('A1')
      await bus.deadLetters.redrive({ key: 'order/A' })
      await until(async () => (await letterOf(bus, 'A2'))?.waiting === 1)
      // Whatever makes the subscription look again must not set the third free.
      poison.delete('X9')
      await bus.deadLetters.redrive({ key: 'order/X' })
      await until(() => seen.includes('X9!'))
      await bus.emit([placed('B', 4)])
      await until(() => seen.includes('B4'))
      expect(seen).toEqual(['A1!', 'X9!', 'B4'])
      poison.clear()
      await bus.deadLetters.redrive({ key: 'order/A' })
      await until(() => seen.length >= 5)
      expect(seen.slice(3)).toEqual(['A2!', 'A3!'])
    },
  ],
  [
    'a letter that is given up lets its key go on without it',
    async ({ bus, expect, until }) => {
      const { seen } = subscribe(bus, 'A1')
      await bus.start()
      await bus.emit([placed('A', 1), placed('A', 2), placed('A', 3)])
      await until(async () => (await letterOf(bus, 'A1'))?.waiting === 2)
      expect(await bus.deadLetters.discard({ owner: 'parking' }, { who: 'kim' })).toEqual(1)
      await until(async () => seen.length >= 2 && (await isDone(bus, 'A1', 'discarded')))
      await bus.emit([placed('A', 4)])
      await until(() => seen.length >= 3)
      expect(seen).toEqual(['A2!', 'A3!', 'A4'])
      expect((await letterOf(bus, 'A1'))!.who).toEqual('kim')
    },
  ],
  [
    'only dead letters are redriven: a second wish changes nothing',
    async ({ bus, expect, until }) => {
      const { seen, poison } = subscribe(bus, 'A1')
      await bus.start()
      await bus.emit([placed('A', 1)])
      await until(async () => (await bus.deadLetters.count()) === 1)
      poison.clear()
      const { id } = (await letterOf(bus, 'A1'))!
      expect(await bus.deadLetters.redrive(id)).toEqual(1)
      await until(async () => (await letterOf(bus, 'A1'))?.status === 'resolved')
      expect([await bus.deadLetters.redrive(id), await bus.deadLetters.discard(id)]).toEqual([0, 0])
      expect(seen).toEqual(['A1!'])
    },
  ],
  [
    'letters are found by owner, key, status, error and event; newest first, page by page',
    async ({ bus, expect, until }) => {
      subscribe(bus, 'A1', 'B2', 'C3')
      await bus.start()
      await bus.emit([placed('A', 1), placed('B', 2), placed('C', 3)])
      await until(async () => (await bus.deadLetters.count()) === 3)
      const names = async (filter: Parameters<typeof bus.deadLetters.list>[0]) =>
        (await bus.deadLetters.list(filter)).map(({ event }) => nameOf(event))
      const [newest, second] = await bus.deadLetters.list()
      expect(await names({})).toEqual(['C3', 'B2', 'A1'])
      expect(await names({ limit: 1 })).toEqual(['C3'])
      expect(await names({ before: second!.id })).toEqual(['A1'])
      expect(await names({ key: 'order/B' })).toEqual(['B2'])
      expect(await names({ error: 'A1 fails' })).toEqual(['A1'])
      expect(await names({ eventId: newest!.event.id })).toEqual(['C3'])
      expect(await names({ owner: 'somebody else' })).toEqual([])
      expect(await bus.deadLetters.count({ status: 'resolved' })).toEqual(0)
    },
  ],
  [
    'a key of your own decides what waits for what',
    async ({ bus, expect, until }) => {
      const seen: string[] = []
      bus.subscribe({
        id: 'parking',
        retry: QUICKLY,
        key: (event) => event.tenant ?? 'nobody',
        handle(event) {
          if (nameOf(event) === 'A1') throw new Error('A1 fails')
          seen.push(nameOf(event))
        },
      })
      await bus.start()
      const [first, second, third] = [placed('A', 1), placed('B', 2), placed('A', 3)]
      await bus.emit([
        { ...first, tenant: 'north' },
        { ...second, tenant: 'north' },
        { ...third, tenant: 'south' },
      ])
      await until(async () => seen.length === 1 && (await letterOf(bus, 'A1'))?.waiting === 1)
      expect([seen, (await letterOf(bus, 'A1'))!.key]).toEqual([['A3'], 'north'])
    },
  ],
]

/** Records what was handled, `!` for what came from a letter or from behind one; fails on names that are poison. */
function subscribe(bus: SubscriptionsUnderTest, ...names: string[]): { seen: string[]; poison: Set<string> } {
  const seen: string[] = []
  const poison = new Set(names)
  bus.subscribe({
    id: 'parking',
    retry: QUICKLY,
    handle(event: AnyEvent, { redriven }) {
      if (poison.has(nameOf(event))) throw new Error(`${nameOf(event)} fails`)
      seen.push(`${nameOf(event)}${redriven ? '!' : ''}`)
    },
  })
  return { seen, poison }
}

async function letterOf(bus: SubscriptionsUnderTest, name: string) {
  return (await bus.deadLetters.list()).find(({ event }) => nameOf(event) === name)
}

/** The letter has come to this end, and nothing waits behind it. */
async function isDone(bus: SubscriptionsUnderTest, name: string, status: 'resolved' | 'discarded'): Promise<boolean> {
  const letter = await letterOf(bus, name)
  return letter?.status === status && letter.waiting === 0
}
