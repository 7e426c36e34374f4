/**
 * Walks the whole log and looks for events that readers cannot have seen: those written at or below a frontier that had
 * already been published, because positions were written by hand or the sequence was set back. A subscription that had
 * passed such an event has skipped it, unless its filter would have. A position alone does not prove that a checkpoint
 * belongs to this history, so the event that it names is looked up as well.
 */
import { compilePatterns } from '../events/index.ts'
import type { Database } from '../postgres/index.ts'
import { selectStates } from './handle-statements.ts'
import { selectForked, selectMarks, selectWalk, type WalkRow } from './verify-statements.ts'

export interface VerifyReport {
  readonly events: number
  /** Numbers without an event: rolled back, or dropped by retention. */
  readonly holes: bigint
  readonly frontier: bigint
  /** Events written below a published frontier; at most 1,000 are listed. */
  readonly late: readonly LateEvent[]
  readonly subscriptions: readonly SubscriptionVerdict[]
  /** No event was written below a published frontier and no checkpoint is of another history: nothing was skipped. */
  readonly ok: boolean
}

export interface LateEvent {
  readonly position: bigint
  readonly id: string
  readonly type: string
}

export interface SubscriptionVerdict {
  readonly id: string
  readonly position: bigint
  readonly skipped: number
  readonly deadLetters: number
  readonly parked: number
  /** The checkpoint belongs to another history: events at or below it may never have been handled. */
  readonly forked: boolean
}

const PAGE = 10_000
const MOST_LATE = 1_000

export async function verify(
  database: Database,
  frontier: bigint,
  onProgress: (done: bigint, of: bigint) => void = () => {},
): Promise<VerifyReport> {
  const marks = await selectMarks(database)
  const late: (LateEvent & { tenant: string | null })[] = []
  let events = 0
  let first: bigint | undefined
  let position = 0n
  let mark = 0
  for (;;) {
    const page: WalkRow[] = await selectWalk(database, position, frontier, PAGE)
    for (const row of page) {
      while (mark < marks.length && marks[mark]!.frontier < row.position) mark++
      if (mark < marks.length && row.recorded > marks[mark]!.at && late.length < MOST_LATE) late.push(row)
    }
    events += page.length
    first ??= page[0]?.position
    position = page.at(-1)?.position ?? position
    onProgress(position, frontier)
    if (page.length < PAGE) break
  }
  const forked = await selectForked(database)
  const subscriptions = (await selectStates(database)).map((state) => {
    const matches = compilePatterns(state.on)
    const skipped = late.filter(
      (event) =>
        event.position <= state.position &&
        matches(event.type) &&
        (state.tenant === null || state.tenant === event.tenant),
    ).length
    const { id, deadLetters, parked } = state
    return { id, position: state.position, skipped, deadLetters, parked, forked: forked.has(id) }
  })
  return {
    events,
    holes: first === undefined ? 0n : position - first + 1n - BigInt(events),
    frontier,
    late: late.map(({ position: at, id, type }) => ({ position: at, id, type })),
    subscriptions,
    ok: late.length === 0 && subscriptions.every((one) => one.skipped === 0 && !one.forked),
  }
}
