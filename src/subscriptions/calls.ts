/** Calling the handler: alone, in a transaction that moves the checkpoint, or with a batch. */
import { removeParked, resolveLetter } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import { isUndecodable } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import type { Queryable, Transaction } from '../postgres/index.ts'
import { isThenable, messagingAttributes } from '../runtime/index.ts'
import { assertAuthorized } from './authorize.ts'
import { CallContext, causedBy, type Leaving, withinTime } from './handler-call.ts'
import { insideHandler } from './handler-transaction.ts'
import type { Item } from './lanes.ts'
import { Leftovers } from './leftovers.ts'
import type { RunState } from './run-state.ts'
import { saveCheckpoint } from './statements.ts'

export interface Call {
  readonly result: Promise<unknown>
  /** Resolves when the handler itself has ended, which may be after its time was up. */
  readonly lingering: Promise<unknown>
  /** Whether the handler threw what `result` rejects with. False: a statement of ours around it failed. */
  readonly byHandler: () => boolean
  /** Whether the connection of the transaction in which the handler ran was lost. */
  readonly connectionLost: () => boolean
}

/** Calls the handler with one event. Without a call where it was done at once; throws what it throws at once. */
export function callHandler(run: RunState, item: Item): Call | Leftovers | undefined {
  if (item.keyError !== undefined) throw item.keyError
  const event = readable(run, item.event)
  const attempt = item.attempts + 1
  const redriven = item.source !== 'log'
  if (run.definition.transactional) {
    return inTransaction(run, item.event, [event], attempt, redriven, (tx) =>
      redriven ? settleRedriven(run, tx, item) : moveCheckpoint(run, tx, [item]),
    )
  }
  const context = new CallContext(run.definition.id, event, attempt, redriven, undefined)
  if (run.definition.leaves) context.leaving = toLeaving(run, item)
  const called = run.definition.authorize
    ? callAuthorized(run, item.event, [event], context, item.suspect)
    : handle(run, item.event, [event], context, item.suspect)
  if (isThenable(called)) return watch(run, called, context)
  return called instanceof Leftovers ? called : undefined
}

/** Calls the handler with several events at once. */
export function callBatch(run: RunState, items: readonly Item[]): Call {
  const unkeyed = items.find(({ keyError }) => keyError !== undefined)
  if (unkeyed) throw unkeyed.keyError
  const events = items.map((item) => readable(run, item.event))
  const cause = items[0]!.event
  if (run.definition.transactional) {
    return inTransaction(run, cause, events, 1, false, (tx) => moveCheckpoint(run, tx, items))
  }
  const context = new CallContext(run.definition.id, events[0]!, 1, false, undefined)
  return watch(run, callAuthorized(run, cause, events, context), context)
}

/** Redriven and handled: the letter is resolved, or the event no longer waits. */
export async function settleRedriven(run: RunState, db: Queryable, item: Item): Promise<void> {
  const kept =
    item.source === 'letter'
      ? await resolveLetter(db, run.lease, item.letter!)
      : await removeParked(db, run.lease, item.event.position)
  if (!kept) throw leaseLost(run)
}

function toLeaving({ saver, writer }: RunState, { event, source }: Item): Leaving | undefined {
  // A redriven event is not unfinished: no checkpoint holds its place.
  if (source !== 'log') return undefined
  return {
    settled: saver.settledOf(event),
    writeEarly(part) {
      saver.keepPart(event, part)
      void writer.finished()
    },
  }
}

/** A copy for this attempt, with the payload in its newest form. */
function readable(run: RunState, event: AnyEvent): AnyEvent {
  if (isUndecodable(event)) {
    throw new AftercommitError('UNDECODABLE', `The stored payload of event "${event.id}" cannot be read.`)
  }
  return liftEvent(run.parts.definitions, event)
}

/** `cause` is the first of the events as it was stored: nothing that a handler does to its own changes it. */
function handle(
  { definition, parts: { tracing } }: RunState,
  cause: AnyEvent,
  events: readonly AnyEvent[],
  context: CallContext,
  isSuspect = false,
): unknown {
  const one = isSuspect ? definition.handleSuspect : definition.handle
  const call = one ? () => one(events[0]!, context) : () => definition.handleBatch!(events, context)
  // Actions of observers name the cause themselves where they run code of users: the context of a call costs every promise of it.
  if (definition.leaves) return call()
  if (tracing === undefined) return causedBy(cause, call)
  const { id } = definition
  const links = events.flatMap(({ metadata }) => metadata.traceparent ?? [])
  const attributes = messagingAttributes('process', events, id)
  return causedBy(cause, () => tracing.span(`process ${id}`, attributes, links, call))
}

async function callAuthorized(
  run: RunState,
  cause: AnyEvent,
  events: readonly AnyEvent[],
  context: CallContext,
  isSuspect = false,
): Promise<unknown> {
  await assertAuthorized(run.definition, events)
  return handle(run, cause, events, context, isSuspect)
}

function watch(run: RunState, called: PromiseLike<unknown>, context: CallContext): Call {
  run.calls.add(context)
  const ended = Promise.resolve(called).finally(() => run.calls.delete(context))
  const result = withinTime(ended, run.definition.timeoutMs, run.parts.clock, context)
  return { result, lingering: ended.catch(() => {}), byHandler: () => true, connectionLost: () => false }
}

/** The handler's writes and the checkpoint are one transaction; out of time, its connection goes with it. */
function inTransaction(
  run: RunState,
  cause: AnyEvent,
  events: readonly AnyEvent[],
  attempt: number,
  redriven: boolean,
  settle: (tx: Transaction) => Promise<void>,
): Call {
  const { database, wrapTransaction } = run.parts
  const tooLate = new AbortController()
  let handled: Promise<unknown> = Promise.resolve()
  let byHandler = false
  let opened: Transaction | undefined
  const work = async (tx: Transaction) => {
    opened = tx
    const context = new CallContext(run.definition.id, events[0]!, attempt, redriven, wrapTransaction(tx))
    const handling = insideHandler({ subscription: run.definition.id, database, tx }, () =>
      callAuthorized(run, cause, events, context),
    )
    const call = watch(run, handling, context)
    handled = call.lingering
    await call.result.catch((error) => {
      byHandler = true
      if ((error as { code?: string }).code === 'TIMED_OUT' || run.lost) tooLate.abort(error)
      throw error
    })
    await settle(tx)
  }
  // Whatever the database's default: a term is a fence only for statements that see what was committed meanwhile.
  const result = run.exclusively(() =>
    causedBy(cause, () => database.transaction(work, { isolation: 'read committed', signal: tooLate.signal })),
  )
  // The transaction ends when time is up; the handler may go on.
  return {
    result,
    lingering: result.catch(() => {}).then(() => handled),
    byHandler: () => byHandler,
    connectionLost: () => opened?.lost === true,
  }
}

async function moveCheckpoint(run: RunState, tx: Transaction, items: readonly Item[]): Promise<void> {
  const checkpoint = run.progress.checkpoint(items.map(({ event }) => event))
  if (!(await saveCheckpoint(tx, run.lease, checkpoint))) throw leaseLost(run)
}

function leaseLost({ definition }: RunState): AftercommitError {
  return new AftercommitError('LEASE_LOST', `The lease of "${definition.id}" changed hands, so nothing was written.`)
}
