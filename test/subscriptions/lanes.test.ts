/** Order is promised per key: whatever happens to one key, its events run one at a time and in order, others flow. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Item, Lanes, toItem } from '../../src/subscriptions/lanes.ts'
import { eventAt } from './support/sample-event.ts'

describe('lanes', () => {
  it('an event waits behind the earlier one of its key, and other keys do not', () => {
    const { lanes, add } = lanesWith()
    const [a1, a2, b] = [add('a'), add('a'), add('b')]
    expect(lanes.next(0)).toBe(a1)
    lanes.begin(a1)
    expect(lanes.next(0)).toBe(b)
    lanes.begin(b)
    expect(lanes.next(0)).toBeUndefined()
    lanes.finish(a1)
    expect(lanes.next(0)).toBe(a2)
  })

  it('an event that waits for its next try holds back its key until it is due', () => {
    const { lanes, add } = lanesWith()
    const [a1, , b] = [add('a'), add('a'), add('b')]
    lanes.begin(a1)
    lanes.retry(a1, 500)
    expect(lanes.next(0)).toBe(b)
    expect(lanes.nextDueMs()).toBe(0)
    lanes.begin(b)
    lanes.finish(b)
    expect(lanes.next(499)).toBeUndefined()
    expect(lanes.nextDueMs()).toBe(500)
    expect(lanes.next(500)).toBe(a1)
  })

  it('the next try also waits for a call that was given up and has not ended', async () => {
    const { lanes, add } = lanesWith()
    const item = add('a')
    let end = () => {}
    const lingering = new Promise<void>((resolve) => {
      end = resolve
    })
    lanes.begin(item)
    lanes.retry(item, 0, lingering)
    expect(lanes.next(1_000)).toBeUndefined()
    end()
    await lingering
    await Promise.resolve()
    expect(lanes.next(1_000)).toBe(item)
  })

  it('what waits behind an event can be taken away, and the running one stays', () => {
    const { lanes, add } = lanesWith()
    const [a1, a2, a3] = [add('a'), add('a'), add('a')]
    lanes.begin(a1)
    expect(lanes.drain('a')).toEqual([a2, a3])
    expect(lanes.isHeld('a')).toBe(true)
    lanes.finish(a1)
    expect(lanes.busy).toBe(false)
    expect(lanes.drain('a')).toEqual([])
  })

  it('whatever happens, a key runs one event at a time, in order, and the oldest that may run is next', () => {
    fc.assert(
      fc.property(fc.array(moves, { maxLength: 120 }), (script) => {
        const { lanes, add } = lanesWith()
        const running = new Map<string, Item>()
        const waiting = new Map<string, Item[]>()
        const due = new Map<Item, number>()
        let now = 0
        for (const move of script) {
          now++
          if (move.do === 'add') {
            const item = add(move.key)
            waiting.set(move.key, [...(waiting.get(move.key) ?? []), item])
          } else if (move.do === 'start') {
            const mayRun = [...waiting]
              .filter(([key, items]) => items.length > 0 && !running.has(key) && (due.get(items[0]!) ?? 0) <= now)
              .map(([, items]) => items[0]!)
            const oldest = mayRun.sort((a, b) => (a.event.position < b.event.position ? -1 : 1))[0]
            expect(lanes.next(now)).toBe(oldest)
            if (!oldest) continue
            lanes.begin(oldest)
            running.set(oldest.key, oldest)
          } else {
            const item = [...running.values()][move.which % Math.max(1, running.size)]
            if (!item) continue
            running.delete(item.key)
            if (move.do === 'fail') {
              due.set(item, now + 3)
              lanes.retry(item, now + 3)
            } else {
              lanes.finish(item)
              waiting.get(item.key)!.shift()
            }
          }
          expect(lanes.busy).toBe([...waiting.values()].some((items) => items.length > 0))
        }
      }),
    )
  })
})

const moves = fc.oneof(
  fc.record({ do: fc.constant('add' as const), key: fc.constantFrom('a', 'b', 'c') }),
  fc.constant({ do: 'start' as const }),
  fc.record({ do: fc.constantFrom('finish' as const, 'fail' as const), which: fc.nat() }),
)

function lanesWith() {
  const lanes = new Lanes()
  let position = 0n
  const add = (key: string) => {
    const item = toItem(eventAt(++position), key)
    lanes.add(item)
    return item
  }
  return { lanes, add }
}
