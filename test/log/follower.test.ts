import { describe, expect, test } from 'vitest'
import { FIRST_WINDOW, type FilteredPage, type FollowedLog, Follower, type PageFilter } from '../../src/log/index.ts'
import { gate } from '../runtime/support.ts'

/** A log without events, whose epoch, frontier and reads the test decides. */
class FakeLog implements FollowedLog {
  epoch = 1
  frontier = 100n
  readonly asked: PageFilter[] = []
  readonly waiting: { after: bigint; signal: AbortSignal; tell: () => void }[] = []
  onRead: (filter: PageFilter) => Promise<void> = async () => {}

  async readFiltered(_after: bigint, _limit: number, filter: PageFilter): Promise<FilteredPage> {
    this.asked.push(filter)
    await this.onRead(filter)
    return { events: [], upTo: this.frontier, window: { ...filter.window, positions: filter.window.positions * 2n } }
  }

  async waitBeyond(after: bigint, signal: AbortSignal): Promise<void> {
    const { passed, pass } = gate()
    this.waiting.push({ after, signal, tell: pass })
    await passed
  }
}

describe('a follower of the log', () => {
  test('reads with its filter, and lets the window follow what was found', async () => {
    const log = new FakeLog()
    const follower = new Follower(log, { type: '^order', tenant: 'a' })
    expect(await follower.read(0n, 10)).toMatchObject({ upTo: 100n })
    await follower.read(0n, 10)
    expect(log.asked.map(({ type, tenant, window }) => [type, tenant, window.positions])).toEqual([
      ['^order', 'a', FIRST_WINDOW.positions],
      ['^order', 'a', FIRST_WINDOW.positions * 2n],
    ])
  })

  test('has lost its place in another epoch until the reader enters it, and not while the epoch is unknown', () => {
    const log = new FakeLog()
    const follower = new Follower(log)
    expect(follower.hasLostPlace).toBe(false)
    log.epoch = 0
    expect(follower.hasLostPlace).toBe(false)
    log.epoch = 2
    expect(follower.hasLostPlace).toBe(true)
    follower.enterEpoch()
    expect(follower.hasLostPlace).toBe(false)
    expect(follower.epoch).toBe(2)
  })

  test('gives no page that was read while the log entered another epoch', async () => {
    const log = new FakeLog()
    const follower = new Follower(log)
    log.onRead = async () => {
      log.epoch = 2
    }
    expect(await follower.read(0n, 10)).toBeUndefined()
    expect(follower.hasLostPlace).toBe(true)
  })

  test('asks for less after the server cancelled a read, and throws every other error', async () => {
    const log = new FakeLog()
    const follower = new Follower(log)
    const cancelled = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
    log.onRead = async ({ window }) => {
      if (window.positions > 3_000n) throw cancelled
    }
    expect(await follower.read(0n, 10)).toBeUndefined()
    expect(await follower.read(0n, 10)).toMatchObject({ upTo: 100n })
    expect(log.asked.at(-1)!.window.positions).toBe(2_500n)
    log.onRead = () => Promise.reject(new Error('away'))
    await expect(follower.read(0n, 10)).rejects.toThrow('away')
  })

  test('wakes its reader when there is more, and one wait for news serves all idles until then', async () => {
    const log = new FakeLog()
    const follower = new Follower(log)
    for (let n = 0; n < 3; n++) await follower.idle(100n, { wake: () => {}, wait: async () => {} })
    expect(log.waiting).toMatchObject([{ after: 100n }])
    const { passed, pass } = gate()
    const idle = follower.idle(101n, { wake: pass, wait: () => passed })
    log.waiting[0]!.tell()
    await idle
    // A lower position may have news already, so it is asked for.
    await follower.idle(101n, { wake: () => {}, wait: async () => {} })
    await follower.idle(50n, { wake: () => {}, wait: async () => {} })
    expect(log.waiting).toMatchObject([{ after: 100n }, { after: 101n }, { after: 50n }])
  })
})
