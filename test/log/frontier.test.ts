import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFrontier, deliverable, type Frontier, findHolders, type Observation } from '../../src/log/frontier.ts'

const at = (head: bigint, ...holders: string[]): Observation => ({ head, holders, numberHolders: holders })

describe('the frontier', () => {
  test('moves to the head at once when nobody holds a number', () => {
    const frontier = createFrontier(0n)
    expect(frontier.observe(at(7n), 0)).toBe(true)
    expect(frontier.position).toBe(7n)
    expect(frontier.blocked).toBe(false)
  })

  test('waits for everybody who held a number when the head was read', () => {
    const frontier = createFrontier(0n)
    expect(frontier.observe(at(7n, '3/1', '4/1'), 0)).toBe(false)
    expect(frontier.observe(at(7n, '4/1'), 10)).toBe(false)
    expect(frontier.position).toBe(0n)
    expect(frontier.blocked).toBe(true)
    expect(frontier.observe(at(7n), 20)).toBe(true)
    expect(frontier.position).toBe(7n)
  })

  test('does not wait for those who came later, and goes no further than the head they had not reached', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(7n, '3/1'), 0)
    expect(frontier.observe(at(9n, '4/1'), 10)).toBe(true)
    expect(frontier.position).toBe(7n)
    expect(frontier.blocked).toBe(true)
  })

  test('takes a session in its next transaction for somebody else', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(7n, '3/1'), 0)
    expect(frontier.observe(at(8n, '3/2'), 10)).toBe(true)
    expect(frontier.position).toBe(7n)
  })

  test('settles several observations with one look', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(3n, '3/1'), 0)
    frontier.observe(at(5n, '3/1', '4/1'), 10)
    frontier.observe(at(9n, '3/1', '4/1', '5/1'), 20)
    expect(frontier.observe(at(9n, '5/1'), 30)).toBe(true)
    expect(frontier.position).toBe(5n)
  })

  test.each(['stands still', 'grows'])('waits for a holder however many years pass, while the log %s', (log) => {
    const frontier = createFrontier(0n)
    const aYear = 365 * 24 * 60 * 60 * 1_000
    for (let year = 0; year < 100; year++) {
      const head = log === 'grows' ? BigInt(year + 2) : 2n
      expect(frontier.observe(at(head, '3/1'), year * aYear)).toBe(false)
    }
    expect(frontier.position).toBe(0n)
  })

  test('that is full still remembers its oldest observations, so that it goes on as soon as they settle', () => {
    const frontier = createFrontier(0n)
    for (let i = 0; i < 500; i++) frontier.observe(at(BigInt(i + 1), 'first', `${i}`), i * 10)
    expect(frontier.observe(at(500n), 5_000)).toBe(true)
    expect(frontier.position).toBe(500n)

    const other = createFrontier(0n)
    other.observe(at(10n, 'first'), 0)
    for (let i = 0; i < 500; i++) other.observe(at(BigInt(i + 11), 'first', 'second'), i * 10)
    expect(other.observe(at(600n, 'second'), 5_010)).toBe(true)
    expect(other.position).toBe(10n)
  })

  test('keeps no more observations than one in 8 ms, and loses nothing by it', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(1n, '3/1'), 0)
    frontier.observe(at(2n, '3/1', '4/1'), 1)
    expect(frontier.observe(at(2n, '4/1'), 2)).toBe(true)
    expect(frontier.position).toBe(1n)
    expect(frontier.observe(at(2n), 3)).toBe(true)
    expect(frontier.position).toBe(2n)
  })

  test('moves along when numbers were read without a hole', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(5n, '3/1'), 0)
    frontier.reachedWithoutHole(6n)
    expect(frontier.position).toBe(6n)
    expect(frontier.blocked).toBe(false)
    frontier.reachedWithoutHole(2n)
    expect(frontier.position).toBe(6n)
  })

  test('never moves back', () => {
    const frontier = createFrontier(9n)
    expect(frontier.observe(at(4n), 0)).toBe(false)
    expect(frontier.position).toBe(9n)
  })

  test('that forgets what it waited for waits again and stays where it was', () => {
    const frontier = createFrontier(2n)
    frontier.observe(at(7n, '3/1'), 0)
    frontier.forget()
    expect(frontier.blocked).toBe(false)
    expect(frontier.position).toBe(2n)
    expect(frontier.observe(at(7n, '3/1'), 1)).toBe(false)
    expect(frontier.observe(at(7n), 2)).toBe(true)
  })

  test('begins anew in another history, further back if need be', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(7n), 0)
    frontier.observe(at(9n, '3/1'), 10)
    frontier.restart(4n)
    expect(frontier.position).toBe(4n)
    expect(frontier.blocked).toBe(false)
  })

  test('takes a hole of five million numbers in one step', () => {
    const frontier = createFrontier(1n)
    frontier.observe(at(5_000_002n, '3/1'), 0)
    expect(frontier.observe(at(5_000_002n), 10)).toBe(true)
    expect(frontier.position).toBe(5_000_002n)
  })

  /**
   * A server that restarts gives its prepared transactions new names: 5/12 becomes -1/<transaction id>. A reader behind
   * a pooler does not learn of the restart, so what it waited for seems to be gone.
   */
  test('waits for a prepared transaction under the name a restart of the server gave it', () => {
    const frontier = createFrontier(0n)
    frontier.observe(at(2n, '5/12'), 0)
    expect(frontier.observe(at(2n, '-1/777'), 10)).toBe(false)
    expect(frontier.position).toBe(0n)
    expect(frontier.observe(at(2n), 20)).toBe(true)
    expect(frontier.position).toBe(2n)
  })
})

describe('what may be delivered', () => {
  test('is the unbroken run, up to the first hole above the frontier', () => {
    expect(deliverable([1n, 2n, 4n], 0n, 0n)).toEqual({ count: 2, last: 2n })
  })

  test('is everything at or below the frontier, whatever is missing there', () => {
    expect(deliverable([2n, 5n, 6n], 0n, 5n)).toEqual({ count: 3, last: 6n })
    expect(deliverable([2n, 5n, 7n], 0n, 5n)).toEqual({ count: 2, last: 5n })
  })

  test('is nothing while the first number is missing', () => {
    expect(deliverable([2n, 3n], 0n, 0n)).toEqual({ count: 0, last: 0n })
  })

  test('does not go on behind a frontier that is ahead of what was read', () => {
    expect(deliverable([3n, 11n], 0n, 9n)).toEqual({ count: 1, last: 3n })
    expect(deliverable([3n, 10n, 11n], 0n, 9n)).toEqual({ count: 3, last: 11n })
    expect(deliverable([8n, 9n], 5n, 7n)).toEqual({ count: 2, last: 9n })
  })

  test('of nothing is nothing', () => {
    expect(deliverable([], 4n, 4n)).toEqual({ count: 0, last: 4n })
  })
})

describe('a reader that relies on the frontier', () => {
  test('delivers exactly what was committed, in order, however writers and its own steps interleave', () => {
    fc.assert(
      fc.property(games, (steps) => {
        const game = createGame()
        for (const { kind, writer } of steps) game.play(kind, writer)
        game.finish()
        expect(game.delivered).toEqual(game.committed())
      }),
      { numRuns: 3_000 },
    )
  })

  test('would be caught by this game if it looked at the holders before the head', () => {
    const careless = () =>
      fc.assert(
        fc.property(games, (steps) => {
          const game = createGame('holders first')
          for (const { kind, writer } of steps) game.play(kind, writer)
          game.finish()
          expect(game.delivered).toEqual(game.committed())
        }),
        { numRuns: 3_000 },
      )
    expect(careless).toThrow()
  })
})

type Kind = 'take' | 'commit' | 'roll back' | 'read'
const step = fc.record({
  kind: fc.constantFrom<Kind>('take', 'take', 'commit', 'commit', 'roll back', 'read', 'read', 'read'),
  writer: fc.integer({ min: 0, max: 3 }),
})
const games = fc.array(step, { maxLength: 80, size: 'max' })

/** A log in memory with the rules of the engine: numbers at once, rows at commit, locks let go after that. */
function createGame(order: 'head first' | 'holders first' = 'head first') {
  const open = new Map<number, { name: string; numbers: bigint[] }>()
  const visible = new Set<bigint>()
  const delivered: bigint[] = []
  const frontier: Frontier = createFrontier(0n)
  let sequence = 0n
  let transactions = 0
  let now = 0
  let position = 0n
  let head = 0n
  let holders: string[] = []
  let nextStep = 0

  const readHead = () => {
    head = [...visible].reduce((a, b) => (a > b ? a : b), 0n)
  }
  const scanHolders = () => {
    holders = [...open.values()].map(({ name }) => name)
  }
  const readRows = () => {
    now += 10
    frontier.observe(at(head, ...holders), now)
    const rows = [...visible].filter((number) => number > position).sort((a, b) => (a < b ? -1 : 1))
    const { count, last } = deliverable(rows, position, frontier.position)
    delivered.push(...rows.slice(0, count))
    position = last
    if (frontier.position > position) position = frontier.position
    frontier.reachedWithoutHole(position)
  }
  const reading = order === 'head first' ? [readHead, scanHolders, readRows] : [scanHolders, readHead, readRows]

  const end = (writer: number, commits: boolean) => {
    for (const number of open.get(writer)?.numbers ?? []) if (commits) visible.add(number)
    open.delete(writer)
  }

  return {
    delivered,
    committed: () => [...visible].sort((a, b) => (a < b ? -1 : 1)),
    play(kind: Kind, writer: number) {
      if (kind === 'read') reading[nextStep++ % 3]!()
      else if (kind !== 'take') end(writer, kind === 'commit')
      else {
        if (!open.has(writer)) open.set(writer, { name: `${writer}/${++transactions}`, numbers: [] })
        open.get(writer)!.numbers.push(++sequence)
      }
    },
    finish() {
      for (const writer of [...open.keys()]) end(writer, true)
      while (nextStep % 3 !== 0) reading[nextStep++ % 3]!()
      for (const read of reading) read()
    },
  }
}

describe('holders', () => {
  const both = (holder: string) => ({ holder, of_sequence: true, of_events: true })
  const sequence = (holder: string) => ({ holder, of_sequence: true, of_events: false })
  const events = (holder: string) => ({ holder, of_sequence: false, of_events: true })

  test('are the transactions that have both locks, prepared ones included', () => {
    expect(findHolders([both('3/1'), sequence('4/1'), events('5/1'), both('-1/700')])).toEqual(['3/1', '-1/700'])
  })

  test('are both halves of none: a stranger keeps nobody waiting, not even with a prepared transaction', () => {
    expect(findHolders([sequence('3/1'), sequence('4/1'), sequence('-1/700')])).toEqual([])
  })

  test('is a transaction whose locks are being handed over, whichever went first', () => {
    expect(findHolders([sequence('3/1'), events('-1/700')])).toEqual(['-1/700'])
    expect(findHolders([events('3/1'), sequence('-1/700')])).toEqual(['-1/700'])
  })
})
