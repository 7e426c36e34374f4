/** Events in batches. A failing batch is halved until the event that fails is alone; from there on it is like any other. */
import { SchemaVersionTooNewError } from '../events/index.ts'
import { callBatch } from './calls.ts'
import type { Item } from './lanes.ts'
import { needNewerCode, park, recover } from './outcomes.ts'
import type { RunState } from './run-state.ts'

/** `runAlone` starts one event by itself. */
export async function runBatch(
  run: RunState,
  batch: readonly Item[],
  runAlone: (item: Item) => Promise<void>,
): Promise<void> {
  if (batch.length === 0 || run.lost) return
  if (batch.length === 1 || run.careful > 0) {
    for (const item of batch) await runOne(run, item, runAlone)
    return
  }
  try {
    await callBatch(run, batch).result
  } catch (error) {
    if (run.lost) return
    if (error instanceof SchemaVersionTooNewError) return needNewerCode(run, error)
    const middle = batch.length >>> 1
    await runBatch(run, batch.slice(0, middle), runAlone)
    await runBatch(run, batch.slice(middle), runAlone)
    return
  }
  for (const { event } of batch) run.progress.finish(event.position, event.id)
  run.handled += batch.length
  run.parts.metrics.handled.inc(batch.length)
  if (run.streak.length > 0 || run.failing) await recover(run)
  if (!run.definition.transactional) await run.writer.finished()
}

/** An earlier half of the same batch may have parked its key, or left it waiting for its next try. */
async function runOne(run: RunState, item: Item, runAlone: (item: Item) => Promise<void>): Promise<void> {
  const waits = run.lanes.isHeld(item.key)
  if (run.parkedKeys.has(item.key) && !waits) return park(run, [item])
  run.lanes.add(item)
  if (!waits) await runAlone(item)
}
