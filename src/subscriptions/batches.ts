/** Events in batches. A failing batch is halved until the event that fails is alone; from there on it is like any other. */
import { SchemaVersionTooNewError } from '../events/index.ts'
import { type BisectStep, bisect } from '../runtime/index.ts'
import { type Call, callBatch } from './calls.ts'
import type { Item } from './lanes.ts'
import {
  isElsewhere,
  isOutcomeUnknown,
  isUnavailable,
  mustRecover,
  needNewerCode,
  park,
  recover,
  untilEnded,
} from './outcomes.ts'
import type { RunState } from './run-state.ts'

/** `runAlone` starts one event by itself. Returns events that have not begun because everything waits for an earlier one. */
export function runBatch(run: RunState, batch: readonly Item[], runAlone: RunAlone): Promise<readonly Item[]> {
  return bisect(batch, (some) => tryBatch(run, some, runAlone))
}

type RunAlone = (item: Item) => Promise<void> | undefined

async function tryBatch(run: RunState, batch: readonly Item[], runAlone: RunAlone): Promise<BisectStep<Item>> {
  if (mustHold(run)) return { kind: 'stop', left: batch }
  const free = await setAside(run, batch)
  if (free.length <= 1 || run.careful > 0) {
    for (const [i, item] of free.entries()) {
      if (mustHold(run)) return { kind: 'stop', left: free.slice(i) }
      await runOne(run, item, runAlone)
    }
    return { kind: 'done' }
  }
  let call: Call | undefined
  try {
    call = callBatch(run, free)
    await call.result
  } catch (error) {
    if (call) await untilEnded(run, call.lingering)
    if (run.lost || isOutcomeUnknown(run, error) || isElsewhere(run, error)) return { kind: 'stop', left: free }
    if (error instanceof SchemaVersionTooNewError) {
      await needNewerCode(run, error)
      return { kind: 'stop', left: free }
    }
    if (call && (await isUnavailable(run, error, call.byHandler()))) return { kind: 'stop', left: free }
    return { kind: 'halve', items: free }
  }
  for (const { event } of free) run.progress.finish(event.position, event.id)
  run.handled += free.length
  run.parts.metrics.handled.inc(free.length)
  if (mustRecover(run)) await recover(run)
  if (!run.definition.transactional) await run.writer.finished()
  return { kind: 'done' }
}

/** The run is over, the destination is unavailable, or strict order wants an earlier event first. */
function mustHold({ ending, isHeld, definition, failing, lanes }: RunState): boolean {
  return ending || isHeld || ((definition.onFailure === 'stop' || failing) && lanes.busy)
}

/** What an earlier half of the same batch left waiting or parked keeps its place: later events of that key go behind it. */
async function setAside(run: RunState, batch: readonly Item[]): Promise<Item[]> {
  const free: Item[] = []
  for (const item of batch) {
    if (run.parkedKeys.has(item.key)) await park(run, [item])
    else if (run.lanes.isHeld(item.key)) run.lanes.add(item)
    else free.push(item)
  }
  return free
}

async function runOne(run: RunState, item: Item, runAlone: RunAlone): Promise<void> {
  const [free] = await setAside(run, [item])
  if (!free) return
  run.lanes.add(free)
  await runAlone(free)
}
