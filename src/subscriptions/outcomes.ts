/** What follows from a call: done, another try, a letter, or the end of the run. */
import {
  markStreak,
  parkEvents,
  redriveStreak,
  returnLetter,
  toErrorRecord,
  writeLetter,
} from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import { SchemaVersionTooNewError } from '../events/index.ts'
import { OutcomeUnknownError } from '../postgres/index.ts'
import { settleRedriven } from './calls.ts'
import { decideCall } from './failure.ts'
import { afterFailure, streakFields } from './fault-streak.ts'
import type { Item } from './lanes.ts'
import { Leftovers } from './leftovers.ts'
import type { RunState } from './run-state.ts'
import { countTry, saveStatus } from './statements.ts'

/** A call that outlived its time may go on for this long before the next try begins beside it. */
const LINGER_MS = 30_000
/** From this fault in a row on, `status` shows why an event is repeated. */
const FIRST_SHOWN = 3

/** Waits for a handler that was given up, unless the run ends: its process must not stay for it. */
export async function untilEnded(run: RunState, lingering: Promise<unknown>): Promise<void> {
  const enough = new AbortController()
  const rest = run.parts.clock.sleep(LINGER_MS, AbortSignal.any([enough.signal, run.stopping]))
  await Promise.race([lingering, rest.catch(() => {})])
  enough.abort()
}

/** A promise only where something is waited for: far behind, most events are done with at once. */
export function succeed(run: RunState, item: Item, left?: Leftovers): Promise<void> | undefined {
  const { definition, parts, lanes, progress } = run
  run.handled++
  parts.metrics.handled.inc()
  if (item.source !== 'log') return succeedRedriven(run, item, left)
  lanes.finish(item)
  // An event of which a part is about to be written is passed behind that part.
  if ((left && !left.isEmpty) || run.saver.settledOf(item.event).length > 0) {
    run.saver.keep(item.event, left ?? new Leftovers())
  } else {
    left?.close()
    progress.finish(item.event.position, item.event.id)
  }
  const written = definition.transactional ? undefined : run.writer.finished()
  if (item.isShown) outdate(run, item)
  if (!mustRecover(run)) return written
  return written ? written.then(() => recover(run)) : recover(run)
}

async function succeedRedriven(run: RunState, item: Item, left?: Leftovers): Promise<void> {
  const { definition, parts, lanes } = run
  if (left && !left.isEmpty) {
    left.redriven = item.source === 'letter' ? { letter: item.letter! } : { position: item.event.position }
    run.saver.keep(item.event, left)
    await run.writer.flush()
  } else {
    left?.close()
    if (!definition.transactional) await settleRedriven(run, parts.database.control, item)
  }
  lanes.finish(item)
  if (!lanes.isHeld(item.key)) run.nudge()
  if (item.isShown) outdate(run, item)
  if (mustRecover(run)) await recover(run)
}

/** Something had failed, here or as the database shows it. */
export function mustRecover({ streak, failing, showsReason }: RunState): boolean {
  return streak.length > 0 || failing || showsReason
}

export interface FailedCall {
  /** The handler threw the error; otherwise a statement of ours around it failed. */
  readonly byHandler: boolean
  /** The connection of the transaction in which the handler ran was lost. */
  readonly connectionLost?: boolean
  /** Resolves when the handler itself has ended, which may be after its time was up. */
  readonly lingering?: Promise<unknown>
}

export async function fail(
  run: RunState,
  item: Item,
  error: unknown,
  { byHandler, connectionLost = false, lingering }: FailedCall,
): Promise<void> {
  const { definition, parts, lanes } = run
  const { clock, metrics } = parts
  if (isOutcomeUnknown(run, error) || isElsewhere(run, error)) return
  if (error instanceof SchemaVersionTooNewError) return needNewerCode(run, error, item)
  const tried = { error, attempt: item.attempts + 1, byHandler, connectionLost, ...streakFields(item.faults) }
  const verdict = decideCall(tried, outagesOf(run, error, byHandler), definition.retry)
  if (verdict.kind === 'unavailable') {
    const ended = lingering && untilEnded(run, lingering)
    lanes.retry(item, clock.monotonic() + verdict.delayMs, ended, () => run.wake())
    return waitForDestination(run, error, verdict.delayMs)
  }
  item.attempts += verdict.kind === 'dead' || verdict.counts ? 1 : 0
  item.faults = afterFailure(item.faults, verdict, parts.database.commits)
  metrics.failed.inc()
  const fields = { ...fieldsOf(run, item), err: error }
  if (verdict.kind === 'retry' || (run.failing && item.source === 'log' && !verdict.hopeless)) {
    const delayMs = verdict.kind === 'retry' ? verdict.delayMs : definition.retry.maxMs
    metrics.retried.inc()
    run.logRepeatedly(
      'warn',
      `retry ${kindOf(error)}`,
      { ...fields, delay_ms: Math.round(delayMs) },
      'handler failed; it is tried again',
    )
    const ended = lingering && untilEnded(run, lingering)
    lanes.retry(item, clock.monotonic() + delayMs, ended, () => run.wake())
    if ((item.faults?.count ?? 0) >= FIRST_SHOWN) void showFault(run, item, error)
    return
  }
  if (definition.onFailure === 'stop' && item.source === 'log') return halt(run, item, error)
  if (item.attempts > 1) run.logRepeatedly('warn', `exceeded ${kindOf(error)}`, fields, 'retries exceeded')
  run.logRepeatedly('error', `dead ${kindOf(error)}`, fields, 'dead letter: the event ran out of tries')
  // Counted before anything is awaited: lanes that fail at the same moment must not all become letters.
  const counted = item.source === 'log' && !verdict.hopeless
  if (counted) run.streak.push(item.event.id)
  const nowFailing = counted && !run.failing && run.streak.length >= definition.failingAfter
  if (nowFailing) run.failing = true
  await bury(run, item, error)
  if (counted && run.failing) await tellFailing(run, nowFailing)
  else if (item.isShown && !run.failing && !run.lost) {
    item.isShown = false
    if (!(await saveStatus(parts.database.control, run.lease, 'active', null))) run.end('lost')
  }
}

/** Whether a batch failed because the destination of all events is unavailable; then nothing is begun for a while. */
export async function isUnavailable(run: RunState, error: unknown, byHandler: boolean): Promise<boolean> {
  const tried = { error, attempt: 1, byHandler, connectionLost: false, ...streakFields(undefined) }
  const verdict = decideCall(tried, outagesOf(run, error, byHandler), run.definition.retry)
  if (verdict.kind !== 'unavailable') return false
  await waitForDestination(run, error, verdict.delayMs)
  return true
}

function outagesOf({ definition, outages }: RunState, error: unknown, byHandler: boolean): number | undefined {
  return byHandler && definition.isUnavailable(error) ? outages : undefined
}

/** The reason is shown by a fenced write, so that a process that has lost its lease sends nothing after the delay. */
async function waitForDestination(run: RunState, error: unknown, delayMs: number): Promise<void> {
  const { database, metrics } = run.parts
  run.outages++
  run.hold(delayMs)
  metrics.failed.inc()
  metrics.retried.inc()
  const fields = { subscription: run.definition.id, delay_ms: Math.round(delayMs), err: error }
  run.logRepeatedly('warn', `unavailable ${kindOf(error)}`, fields, 'destination unavailable; everything waits for it')
  run.showsReason = true
  try {
    const reason = `destination unavailable: ${describe(error)}`
    if (!(await saveStatus(database.control, run.lease, 'failing', reason))) run.end('lost')
  } catch {
    // The next failure shows it.
  }
}

/**
 * The answer to COMMIT was lost: the handler's writes and the checkpoint happened both, or neither. Only the database
 * knows, so the run ends, and the next one begins from what is true.
 */
export function isOutcomeUnknown(run: RunState, error: unknown): boolean {
  const unknown = run.definition.transactional && error instanceof OutcomeUnknownError
  if (unknown) run.end('lost')
  return unknown
}

/** Somebody else has the lease by now: what failed for that is for them, and nothing of it is tried again here. */
export function isElsewhere(run: RunState, error: unknown): boolean {
  const elsewhere = error instanceof AftercommitError && error.code === 'LEASE_LOST'
  if (elsewhere && !run.ending) run.end('lost')
  return elsewhere
}

/** The event becomes a letter; with `park`, whatever waits for its key goes behind it. */
async function bury(run: RunState, item: Item, error: unknown): Promise<void> {
  const { definition, parts, lanes, progress } = run
  const { database, metrics, storeStacks } = parts
  const parks = definition.onFailure === 'park' && !isUnauthorised(error)
  metrics.buried.inc()
  const record = toErrorRecord(error, { storeStacks })
  if (item.source === 'letter') {
    const returned = await returnLetter(
      database.control,
      run.lease,
      item.letter!,
      JSON.stringify(record),
      item.attempts,
    )
    if (!returned) return run.end('lost')
  } else {
    const letter = {
      kind: 'subscription',
      owner: definition.id,
      key: item.key,
      event: item.event,
      error: record,
      attempts: Math.max(1, item.attempts),
      sinceFirstMs: parts.clock.monotonic() - (item.firstTriedMs ?? parts.clock.monotonic()),
      parks,
    } as const
    const written = await run.once(() => {
      const checkpoint = progress.checkpoint(item.source === 'log' ? [item.event] : [])
      return writeLetter(database.control, run.lease, checkpoint, letter)
    })
    if (!written) return run.end('lost')
  }
  if (parks) run.parkedKeys.add(item.key)
  lanes.finish(item)
  if (item.source === 'log') progress.finish(item.event.position, item.event.id)
  if (parks)
    await park(
      run,
      lanes.drain(item.key).filter(({ source }) => source === 'log'),
    )
}

/** Copies events behind the letter of their key, and passes them. */
export async function park(run: RunState, items: readonly Item[]): Promise<void> {
  if (items.length === 0) return
  const { database } = run.parts
  const parked = await run.once(() => {
    const checkpoint = run.progress.checkpoint(items.map(({ event }) => event))
    return parkEvents(database.control, run.lease, checkpoint, items)
  })
  if (!parked) return run.end('lost')
  for (const { event } of items) run.progress.finish(event.position, event.id)
}

/** After an unclean end: whether the event ended the process so often that it must not be begun again. */
export async function isDeadly(run: RunState, item: Item): Promise<boolean> {
  const tries = await run.once(() =>
    countTry(run.parts.database.control, run.lease, run.progress.checkpoint(), item.event.position),
  )
  if (tries === undefined) {
    run.end('lost')
    return true
  }
  if (tries <= run.definition.retry.maxAttempts) return false
  item.attempts = tries - 1
  await bury(
    run,
    item,
    new AftercommitError('PROCESS_DIED', `The process ended ${tries - 1} times while it handled this event.`),
  )
  return true
}

/** A batch that succeeded counts like a single event. */
export async function recover(run: RunState): Promise<void> {
  const { database, logger } = run.parts
  const { id } = run.definition
  run.streak = []
  run.outages = 0
  if (!run.failing && !run.showsReason) return
  const wasFailing = run.failing
  run.failing = false
  run.showsReason = false
  if (!(await saveStatus(database.control, run.lease, 'active', null))) return run.end('lost')
  if (!wasFailing) return
  const letters = await redriveStreak(database.control, run.lease)
  logger.info({ subscription: id, letters }, 'subscription recovered; its letters are redriven')
  run.nudge()
}

/**
 * Shows why an event is repeated although its attempts do not count. Nothing waits for the write: on a lost path it would
 * hang, and the next repetition writes the reason again.
 */
async function showFault(run: RunState, item: Item, error: unknown): Promise<void> {
  if (run.failing || run.ending) return
  const { control } = run.parts.database
  item.isShown = true
  try {
    await saveStatus(control, run.lease, 'active', `event ${item.event.id} is repeated: ${describe(error)}`)
    // The event ended meanwhile: its end may have been written before the reason.
    if (!item.isShown && !run.failing) await saveStatus(control, run.lease, 'active', null)
  } catch {}
}

/** The event whose reason `status` shows has ended. */
function outdate(run: RunState, item: Item): void {
  item.isShown = false
  run.showsReason = true
}

async function tellFailing(run: RunState, isNew: boolean): Promise<void> {
  const { database, logger } = run.parts
  const { id } = run.definition
  await markStreak(database.control, run.lease, run.streak)
  if (!isNew) return
  const reason = `${run.streak.length} keys in a row ran out of tries`
  if (!(await saveStatus(database.control, run.lease, 'failing', reason))) return run.end('lost')
  logger.error({ subscription: id }, `subscription is failing: ${reason}; it tries the next event until that succeeds`)
}

function isUnauthorised(error: unknown): boolean {
  return error instanceof AftercommitError && error.code === 'UNAUTHORIZED'
}

/** Not the event's fault: a process with newer code will handle it. */
export async function needNewerCode(run: RunState, error: SchemaVersionTooNewError, item?: Item): Promise<void> {
  const { database, logger } = run.parts
  const { id } = run.definition
  if (item) run.lanes.retry(item, Number.POSITIVE_INFINITY)
  run.end('needs newer code')
  logger.error({ subscription: id, event_id: error.eventId, err: error }, 'needs newer code: the lease is given up')
  await saveStatus(database.control, run.lease, 'active', `needs newer code for "${error.eventName}"`)
}

async function halt(run: RunState, item: Item, error: unknown): Promise<void> {
  const { database, logger } = run.parts
  run.lanes.retry(item, Number.POSITIVE_INFINITY)
  const reason = `event ${item.event.id}: ${describe(error)}`
  const stopped = await saveStatus(database.control, run.lease, 'stopped', reason)
  run.end(stopped ? 'halted' : 'lost')
  if (!stopped) return
  logger.error({ ...fieldsOf(run, item), err: error }, 'subscription stopped: the event ran out of tries')
}

function describe(error: unknown): string {
  const { name, code, message } = toErrorRecord(error)
  return `${code ?? name}: ${message}`
}

/** Failures of one kind are told once, then counted. */
function kindOf(error: unknown): string {
  const { name, code, message } = toErrorRecord(error)
  return `${name} ${code ?? message.slice(0, 100)}`
}

/** What every line about an event says; never the payload or the user. */
export function fieldsOf(run: RunState, { event, attempts }: Item): Record<string, unknown> {
  return {
    subscription: run.definition.id,
    event_id: event.id,
    event_type: event.type,
    correlation_id: event.metadata.correlationId,
    trace_id: event.traceId,
    attempt: attempts,
  }
}
