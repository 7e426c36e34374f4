/** Reading the log for a hook on a server that cancels long statements. */
import { expect, it } from 'vitest'
import { readHistory } from '../../src/hooks/history.ts'
import { FIRST_WINDOW, type PageFilter } from '../../src/log/index.ts'
import { afterRead } from '../../src/log/read-window.ts'

const HEAD = 3_000_000n
/** Positions that the server of these tests reads in time. */
const MOST_IN_TIME = 20_000n

/** A log without a matching event, where each read of a wide window is cancelled. */
function slowLog() {
  const asked: { window: bigint; cancelled: boolean }[] = []
  const tailer = {
    async readFiltered(after: bigint, limit: number, { window }: PageFilter) {
      const cancelled = window.positions > MOST_IN_TIME
      asked.push({ window: window.positions, cancelled })
      if (cancelled) throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
      const covered = after + window.positions > HEAD ? HEAD - after : window.positions
      return { events: [], upTo: after + covered, window: afterRead(window, { covered, found: 0, limit }) }
    },
  }
  const database = { control: { schema: 'aftercommit', query: async () => ({ rows: [{ kept: '1' }], rowCount: 1 }) } }
  return { asked, parts: { tailer, database } as unknown as Parameters<typeof readHistory>[0] }
}

it('history is read to its end although windows that grew are cancelled by a statement timeout', async () => {
  const { asked, parts } = slowLog()
  for await (const _event of readHistory(parts, HEAD, { types: ['lamp.lit'] }));
  expect(asked[0]!.window).toBe(FIRST_WINDOW.positions)
  expect(asked.some(({ cancelled }) => cancelled)).toBe(true)
  const covered = asked.filter(({ cancelled }) => !cancelled).reduce((sum, { window }) => sum + window, 0n)
  expect(covered).toBeGreaterThanOrEqual(HEAD)
})
