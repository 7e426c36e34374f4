/**
 * One try of one event: the call, and what follows from how it went. A promise is made only where something is waited for:
 * promises cost more than a handler that does little.
 */
import { type Call, callHandler } from './calls.ts'
import type { Item } from './lanes.ts'
import { Leftovers } from './leftovers.ts'
import { fail, fieldsOf, isDeadly, succeed } from './outcomes.ts'
import type { RunState } from './run-state.ts'

export function tryEvent(run: RunState, item: Item): Promise<void> | undefined {
  item.firstTriedMs ??= run.parts.clock.monotonic()
  item.faults?.begin(run.parts.database.commits)
  return run.careful > 0 && item.attempts === 0 ? tryCarefully(run, item) : call(run, item)
}

async function tryCarefully(run: RunState, item: Item): Promise<void> {
  if (item.source === 'log') run.careful--
  item.suspect = true
  if (!(await isDeadly(run, item))) await call(run, item)
}

function call(run: RunState, item: Item): Promise<void> | undefined {
  const { logger, tellsDetails } = run.parts
  if (tellsDetails) logger.debug(fieldsOf(run, item), 'processing event')
  let called: Call | Leftovers | undefined
  try {
    called = callHandler(run, item)
  } catch (error) {
    return run.lost ? undefined : fail(run, item, error, { byHandler: true })
  }
  return called === undefined || called instanceof Leftovers ? handled(run, item, called) : settle(run, item, called)
}

async function settle(
  run: RunState,
  item: Item,
  { result, lingering, byHandler, connectionLost }: Call,
): Promise<void> {
  let left: unknown
  try {
    left = await result
  } catch (error) {
    if (!run.lost) await fail(run, item, error, { byHandler: byHandler(), connectionLost: connectionLost(), lingering })
    return
  }
  // A redriven event is in no checkpoint to come: counted here it would use up the window of events that are not saved.
  if (item.source === 'log') run.saver.finished()
  await handled(run, item, left instanceof Leftovers ? left : undefined)
}

function handled(run: RunState, item: Item, left?: Leftovers): Promise<void> | undefined {
  if (run.lost) {
    left?.close()
    return undefined
  }
  const { logger, tellsDetails } = run.parts
  if (tellsDetails) logger.debug(fieldsOf(run, item), 'handled event')
  return succeed(run, item, left)
}
