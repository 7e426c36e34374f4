/**
 * One time of a schedule, as work. What can come of it, failures first:
 *
 *   the claim is lost      the schedule was removed, or somebody else has it: nothing is done
 *   it cannot be done      it becomes a dead letter, and the next time comes all the same
 *   a dead letter again    it is done once more, for the time it was due; the next time has long had a row of its own
 *   done                   what it does, its end and the row for the next time are one transaction
 *
 * The next time follows from what is stored, not from what this process was given: during a deploy both are there, and
 * either may fire.
 */
import type { Delivering, Delivery, RunContext, Work } from '../delivery/index.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { EmitRequest } from '../log/index.ts'
import type { Database, Transaction } from '../postgres/index.ts'
import { parseRetry, runWithCause, toMs } from '../runtime/index.ts'
import { readCron } from './cron.ts'
import type { Engine } from './engine.ts'
import { RETRY, TIMEOUT } from './registered.ts'
import { type KnownSchedule, nameOfSchedule } from './schedule.ts'
import { lockSchedule, type StoredSchedule, saveFired, saveNext, selectSchedules } from './schedule-statements.ts'

export interface FiringParts {
  readonly database: Database
  readonly delivering: Pick<Delivering, 'add'>
  readonly engine: Engine
  readonly emit: (tx: Transaction, event: EmitRequest) => Promise<unknown>
}

export function scheduleWork(schedule: KnownSchedule, parts: FiringParts): Work {
  const { id } = schedule
  const name = nameOfSchedule(id)
  return {
    kind: 'timer',
    name,
    retry: parseRetry(RETRY),
    timeoutMs: toMs(TIMEOUT, 'timeout'),
    freesUniqueKey: true,
    async run(delivery, context) {
      // A chain of its own: whatever came of the last time is not its cause.
      const cause = { correlationId: `${name}:${dueOf(delivery).toISOString()}`, depth: -1 }
      await runWithCause(cause, () =>
        parts.database.transaction((tx) => fire(schedule, parts, tx, delivery, context), {
          isolation: 'read committed',
        }),
      )
    },
    toEvent: (delivery) => toLetterEvent(id, delivery),
    /** One time that cannot be done must not be the last. */
    async onDead(tx, delivery) {
      if (delivery.redriven) return
      const now = await lockSchedule(tx, id)
      const [stored] = await selectSchedules(tx, id)
      if (stored) await advance(schedule, stored, parts, tx, latest(now, dueOf(delivery)))
    },
  }
}

async function fire(
  schedule: KnownSchedule,
  parts: FiringParts,
  tx: Transaction,
  delivery: Delivery,
  context: RunContext,
): Promise<void> {
  const { id } = schedule
  const due = dueOf(delivery)
  const now = await lockSchedule(tx, id)
  await context.complete(tx)
  const [stored] = await selectSchedules(tx, id)
  // Somebody deleted it by hand and left the row.
  if (!stored) return
  await act(schedule, parts, tx, due)
  await saveFired(tx, id, now)
  // Times that passed meanwhile are not made up for.
  if (!delivery.redriven) await advance(schedule, stored, parts, tx, latest(now, due))
}

async function act({ emit, execute }: KnownSchedule, parts: FiringParts, tx: Transaction, due: Date): Promise<void> {
  if (emit) await parts.emit(tx, typeof emit === 'function' ? emit(due) : emit)
  if (!execute) return
  const { workflow, input } = execute
  await parts.engine.execute(workflow, typeof input === 'function' ? input(due) : input, { tx, hold: true })
}

async function advance(
  { cron, zone, times }: KnownSchedule,
  stored: StoredSchedule,
  { delivering }: FiringParts,
  tx: Transaction,
  after: Date,
): Promise<void> {
  const isMine = stored.cron === cron && stored.zone === zone
  const nextAt = (isMine ? times : await readCron(stored.id, stored.cron, stored.zone)).next(after)
  await saveNext(tx, stored.id, nextAt)
  if (nextAt) await addFiring(delivering, tx, stored.id, nextAt)
}

/** Unique by the id: a schedule has one next time. */
export async function addFiring(
  delivering: Pick<Delivering, 'add'>,
  tx: Transaction,
  id: string,
  due: Date,
): Promise<void> {
  const name = nameOfSchedule(id)
  await delivering.add(tx, [
    { kind: 'timer', name, owner: name, uniqueKey: id, payload: { due: due.getTime() }, runAt: due },
  ])
}

function dueOf({ payload }: Delivery): Date {
  return new Date((payload as { due: number }).due)
}

function latest(one: Date, other: Date): Date {
  return one > other ? one : other
}

/** Its id is the same for every life of the delivery. */
function toLetterEvent(schedule: string, { id, createdAt, payload }: Delivery): AftercommitEvent {
  const none = { version: null, changes: null, previous: null, tenant: null }
  return new AftercommitEvent({
    ...none,
    id: `schedule:${id}`,
    type: 'aftercommit.schedule',
    position: 0n,
    aggregateType: 'schedule',
    aggregateId: schedule,
    payload,
    metadata: { correlationId: null, causationId: null, userId: null, traceparent: null, schemaVersion: 1, depth: 0 },
    occurredAt: createdAt,
    recordedAt: createdAt,
  })
}
