/** When checkpoints are written. The saves are the test's own, so that it decides how long one takes and how it ends. */
import { describe, expect, it } from 'vitest'
import { createTestClock } from '../../src/runtime/index.ts'
import { createCheckpointWriter } from '../../src/subscriptions/checkpoint-writer.ts'
import type { Definition } from '../../src/subscriptions/definition.ts'

describe('coalesced checkpoints', () => {
  it('on a quiet system every finished event is written at once', () => {
    const { writer, finish, started } = setUp('coalesced')
    finish(1n)
    void writer.finished()
    expect(started()).toEqual([1n])
  })

  it('one write is under way at a time, and the next is of the newest position', async () => {
    const { clock, writer, finish, started, end } = setUp('coalesced')
    for (const position of [1n, 2n, 3n]) {
      finish(position)
      void writer.finished()
      await clock.advance(50)
    }
    expect(started()).toEqual([1n])
    await end()
    await clock.advance(50)
    expect(started()).toEqual([1n, 3n])
  })

  it('a write that failed is tried again although nothing more happens', async () => {
    const { clock, writer, finish, started, end, errors } = setUp('coalesced')
    finish(1n)
    void writer.finished()
    await end(new Error('the server went away'))
    expect(errors).toHaveLength(1)
    await clock.advance(60_000)
    expect(started()).toEqual([1n, 1n])
  })

  it('what a filter passes over is written too, in the end, although nothing more happens', async () => {
    const { clock, writer, finish, started, end } = setUp('coalesced')
    finish(10n)
    writer.passed()
    await clock.advance(60_000)
    await end()
    finish(20n)
    writer.passed()
    await clock.advance(60_000)
    expect(started()).toEqual([10n, 20n])
  })

  it('what is passed over while a write is under way is written too', async () => {
    const { clock, writer, finish, started, end } = setUp('coalesced')
    finish(10n)
    void writer.finished()
    finish(20n)
    writer.passed()
    await end()
    await clock.advance(60_000)
    expect(started()).toEqual([10n, 20n])
  })

  it('passing over many pages is not a write for each', async () => {
    const { clock, writer, finish, started, end } = setUp('coalesced')
    for (let page = 1n; page <= 1_000n; page++) {
      finish(page)
      writer.passed()
      await end()
      await clock.advance(2)
    }
    expect(started().length).toBeLessThan(10)
  })
})

describe('batched checkpoints', () => {
  const mode = { every: 3, withinMs: 5_000 }

  it('three events are one write', async () => {
    const { clock, writer, finish, started } = setUp(mode)
    for (const position of [1n, 2n, 3n]) {
      expect(started()).toEqual([])
      finish(position)
      void writer.finished()
    }
    await clock.advance(10)
    expect(started()).toEqual([3n])
  })

  it('fewer are written after the delay without further traffic, and not before', async () => {
    const { clock, writer, finish, started } = setUp(mode)
    finish(1n)
    void writer.finished()
    await clock.advance(4_000)
    expect(started()).toEqual([])
    await clock.advance(1_000)
    expect(started()).toEqual([1n])
  })
})

describe('synchronous checkpoints', () => {
  it('an event is over when it is written', async () => {
    const { writer, finish, started, end } = setUp('sync')
    finish(1n)
    let over = false
    const written = writer.finished()!.then(() => {
      over = true
    })
    await Promise.resolve()
    expect(started()).toEqual([1n])
    expect(over).toBe(false)
    await end()
    await written
    expect(over).toBe(true)
  })

  it('a write that failed is the failure of the event', async () => {
    const { writer, finish, end } = setUp('sync')
    finish(1n)
    const written = writer.finished()!
    const failure = expect(written).rejects.toThrow('the server went away')
    await end(new Error('the server went away'))
    await failure
  })

  it('two lanes that finish together do not write at the same time', async () => {
    const { writer, finish, started, end, mostAtOnce } = setUp('sync')
    finish(1n)
    const both = [writer.finished()!, writer.finished()!]
    finish(2n)
    await end()
    await end()
    await Promise.all(both)
    expect(started()).toEqual([1n, 2n])
    expect(mostAtOnce()).toBe(1)
  })
})

describe('whatever the mode', () => {
  it.each(['coalesced', 'sync', { every: 100, withinMs: 60_000 }] as const)(
    'a flush waits for the write under way, then writes the newest (%j)',
    async (mode) => {
      const { clock, writer, finish, started, end, mostAtOnce } = setUp(mode)
      finish(1n)
      const first = writer.finished()
      await clock.advance(60_000)
      expect(started()).toEqual([1n])
      finish(2n)
      const flushed = writer.flush()
      await end()
      await end()
      await Promise.all([first, flushed])
      expect(started()).toEqual([1n, 2n])
      expect(mostAtOnce()).toBe(1)
    },
  )

  it('a closed writer leaves no timer behind and writes nothing more', async () => {
    const { clock, writer, finish, started } = setUp({ every: 100, withinMs: 1_000 })
    finish(1n)
    void writer.finished()
    writer.close()
    expect(clock.timers).toBe(0)
    await clock.advance(60_000)
    expect(started()).toEqual([])
  })
})

function setUp(mode: Definition['checkpoint']) {
  const clock = createTestClock()
  const positions: bigint[] = []
  const under: { resolve: () => void; reject: (error: Error) => void }[] = []
  const errors: unknown[] = []
  let position = 0n
  let most = 0
  const writer = createCheckpointWriter({
    mode,
    clock,
    save: () => {
      positions.push(position)
      return new Promise<void>((resolve, reject) => {
        under.push({ resolve, reject })
        most = Math.max(most, under.length)
      })
    },
    onError: (error) => errors.push(error),
  })
  return {
    clock,
    writer,
    errors,
    finish(to: bigint) {
      position = to
    },
    started: () => positions,
    mostAtOnce: () => most,
    /** Ends the write under way, if there is one, and lets everything that follows from it happen. */
    async end(error?: Error) {
      const oldest = under.shift()
      if (error) oldest?.reject(error)
      else oldest?.resolve()
      await clock.advance(0)
    },
  }
}
