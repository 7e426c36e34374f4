/** What a checkpoint says is finished must be exactly what is finished, whatever the order it was finished in. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Checkpoint, Progress } from '../../src/subscriptions/progress.ts'

describe('progress', () => {
  it('begins where the last owner left off', () => {
    expect(new Progress(41n, '{}').checkpoint()).toEqual({ position: 41n, done: '{}', lastEventId: null })
  })

  it('stays below the first event that is not finished, and tells what is finished above it', () => {
    const progress = new Progress(0n, '{}')
    for (const position of [1n, 2n, 3n, 5n]) progress.take(position)
    progress.finish(1n, 'one')
    progress.finish(3n, 'three')
    expect(progress.checkpoint()).toEqual({ position: 1n, done: '{[3,5)}', lastEventId: 'three' })
    progress.finish(2n, 'two')
    expect(progress.checkpoint().position).toBe(4n)
  })

  it('answers as if events were finished that a transaction is about to finish, and changes nothing', () => {
    const progress = new Progress(0n, '{}')
    progress.take(1n)
    progress.take(2n)
    expect(progress.checkpoint([{ position: 1n, id: 'one' }])).toEqual({ position: 1n, done: '{}', lastEventId: 'one' })
    expect(progress.checkpoint()).toMatchObject({ position: 0n, lastEventId: null })
  })

  it('covers exactly what was read and is not open, at every moment', () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 60 }), (script) => {
        const { progress, open, scanned } = play(new Progress(100n, '{}'), 100n, script)
        const checkpoint = progress.checkpoint()
        for (let at = 101n; at <= scanned + 3n; at++) {
          expect([at, isCovered(checkpoint, at)]).toEqual([at, at <= scanned && !open.has(at)])
        }
      }),
    )
  })

  it('the next owner skips what was finished and nothing else, over any number of owners', () => {
    fc.assert(
      fc.property(fc.array(fc.array(steps, { maxLength: 20 }), { minLength: 1, maxLength: 5 }), (owners) => {
        const finished = new Set<bigint>()
        let checkpoint: Checkpoint = { position: 0n, done: '{}', lastEventId: null }
        for (const script of owners) {
          const progress = new Progress(checkpoint.position, asPostgresStores(checkpoint.done))
          const begin = checkpoint.position
          play(progress, begin, script, (position) => finished.add(position))
          const next = progress.checkpoint()
          expect(next.position >= checkpoint.position).toBe(true)
          for (let at = begin + 1n; at <= begin + 80n; at++) {
            // What anybody finished stays finished; what nobody finished and is covered was passed over by a filter.
            if (finished.has(at)) expect([at, isCovered(next, at)]).toEqual([at, true])
          }
          checkpoint = next
        }
      }),
    )
  })
})

/** Read one that matches, read one that does not, or finish one of those that are open. */
const steps = fc.oneof(
  fc.constant({ do: 'take' as const }),
  fc.constant({ do: 'pass' as const }),
  fc.record({ do: fc.constant('finish' as const), which: fc.nat() }),
)

function play(
  progress: Progress,
  begin: bigint,
  script: readonly ({ do: 'take' | 'pass' } | { do: 'finish'; which: number })[],
  onFinish: (position: bigint) => void = () => {},
) {
  const open = new Set<bigint>()
  let scanned = begin
  for (const step of script) {
    if (step.do === 'finish') {
      const chosen = [...open][step.which % Math.max(1, open.size)]
      if (chosen === undefined) continue
      open.delete(chosen)
      progress.finish(chosen, `event-${chosen}`)
      onFinish(chosen)
      continue
    }
    scanned++
    if (step.do === 'pass' || progress.wasFinished(scanned)) progress.pass(scanned)
    else {
      progress.take(scanned)
      open.add(scanned)
    }
  }
  return { progress, open, scanned }
}

function isCovered({ position, done }: Checkpoint, at: bigint): boolean {
  return at <= position || rangesOf(done).some(([from, to]) => at >= from && at < to)
}

function rangesOf(done: string): [bigint, bigint][] {
  return [...done.matchAll(/\[(\d+),(\d+)\)/g)].map(([, from, to]) => [BigInt(from!), BigInt(to!)])
}

/** Postgres puts the ranges of a multirange in order and joins those that touch. */
function asPostgresStores(done: string): string {
  const joined: [bigint, bigint][] = []
  for (const [from, to] of rangesOf(done).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const last = joined.at(-1)
    if (last && from <= last[1]) last[1] = to > last[1] ? to : last[1]
    else joined.push([from, to])
  }
  return `{${joined.map(([from, to]) => `[${from},${to})`).join(',')}}`
}
