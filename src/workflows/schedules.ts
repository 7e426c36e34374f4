/**
 * What comes again and again, by a cron expression. The next time of a schedule is a row among the deliveries, unique by its
 * id: of all processes that know it one fires it, and in the same transaction it does what it does and makes the row for
 * the time after. What was due while nobody was there fires once, as soon as somebody is.
 */
import type { Delivering, Work } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { EmitRequest } from '../log/index.ts'
import type { Database, Transaction } from '../postgres/index.ts'
import { parseRetry, runWithCause } from '../runtime/index.ts'
import { type CronTimes, readCron } from './cron.ts'
import type { Engine } from './engine.ts'
import { RETRY } from './registered.ts'
import {
  deleteSchedule,
  hasNext,
  lockSchedule,
  markFired,
  removeNext,
  type StoredSchedule,
  saveSchedule,
  selectSchedules,
} from './schedule-statements.ts'
import type { Workflow } from './workflow.ts'

export interface ScheduleOptions {
  /** Stable over releases. */
  readonly id: string
  /** Five fields, or six with seconds first. */
  readonly cron: string
  /** A name like `Europe/Berlin`; UTC unless told. */
  readonly zone?: string | undefined
  /** An event to append; a function is told the time it was due. */
  readonly emit?: EmitRequest | ((due: Date) => EmitRequest) | undefined
  /** An input for a workflow. */
  readonly execute?: { readonly workflow: Workflow; readonly input: unknown | ((due: Date) => unknown) } | undefined
}

export interface Schedules {
  /** Known to this process from now on; stored when the process starts, or at once when it has. */
  add(schedule: ScheduleOptions): Promise<void>
  /** Never again, in any process. False when there is none. */
  remove(id: string): Promise<boolean>
  list(): Promise<StoredSchedule[]>
}

export interface SchedulesPart extends Schedules {
  /** Stores what was added so far. */
  begin(): Promise<void>
}

export interface SchedulesOptions {
  readonly database: Database
  readonly delivering: Pick<Delivering, 'add' | 'register' | 'unregister'>
  readonly engine: Engine
  readonly emit: (tx: Transaction, event: EmitRequest) => Promise<unknown>
}

interface Known extends ScheduleOptions {
  readonly zone: string
  readonly times: CronTimes
}

export function createSchedules({ database, delivering, engine, emit }: SchedulesOptions): SchedulesPart {
  const known = new Map<string, Known>()
  let began = false

  const addNext = (tx: Transaction, id: string, due: Date) =>
    delivering.add(tx, [
      {
        kind: 'timer',
        name: nameOf(id),
        owner: nameOf(id),
        uniqueKey: id,
        payload: { due: due.getTime() },
        runAt: due,
      },
    ])

  /** The same schedule is stored by many processes; one that is unchanged keeps its time. */
  async function store(schedule: Known): Promise<void> {
    const { id, cron, zone, times } = schedule
    await database.transaction(
      async (tx) => {
        const now = await lockSchedule(tx, id)
        const [stored] = await selectSchedules(tx, id)
        if (stored?.cron === cron && stored.zone === zone && (await hasNext(tx, nameOf(id)))) return
        const nextAt = times.next(now)
        if (nextAt === undefined) throw noTime(id)
        await removeNext(tx, nameOf(id))
        await saveSchedule(tx, { id, cron, zone, action: describe(schedule), nextAt })
        await addNext(tx, id, nextAt)
      },
      { isolation: 'read committed' },
    )
  }

  async function fire(schedule: Known, tx: Transaction, due: Date, complete: () => Promise<void>): Promise<void> {
    const { id, times, execute } = schedule
    const now = await lockSchedule(tx, id)
    await complete()
    if (schedule.emit) await emit(tx, typeof schedule.emit === 'function' ? schedule.emit(due) : schedule.emit)
    if (execute) {
      const { workflow, input } = execute
      await engine.execute(workflow, typeof input === 'function' ? input(due) : input, { tx, hold: true })
    }
    // Times that passed meanwhile are not made up for.
    const nextAt = times.next(now > due ? now : due)
    await markFired(tx, id, now, nextAt)
    if (nextAt) await addNext(tx, id, nextAt)
  }

  const toWork = (schedule: Known): Work => ({
    kind: 'timer',
    name: nameOf(schedule.id),
    retry: parseRetry(RETRY),
    timeoutMs: 30_000,
    async run({ payload }, context) {
      const due = new Date((payload as { due: number }).due)
      // A chain of its own: whatever came of the last time is not its cause.
      const cause = { correlationId: `${nameOf(schedule.id)}:${due.toISOString()}`, depth: -1 }
      await runWithCause(cause, () =>
        database.transaction((tx) => fire(schedule, tx, due, () => context.complete(tx)), {
          isolation: 'read committed',
        }),
      )
    },
    toEvent: ({ id, createdAt, payload }) => toLetterEvent(schedule.id, String(id), createdAt, payload),
    /** One time that cannot be done must not be the last. */
    async onDead(tx, { payload }) {
      const now = await lockSchedule(tx, schedule.id)
      const due = new Date((payload as { due: number }).due)
      const nextAt = schedule.times.next(now > due ? now : due)
      await markFired(tx, schedule.id, now, nextAt)
      if (nextAt) await addNext(tx, schedule.id, nextAt)
    },
  })

  return {
    async add(options) {
      const { id, cron, zone = 'UTC' } = check(options)
      if (known.has(id)) throw refused(id, 'is added twice in this process')
      const schedule = { ...options, zone, times: await readCron(id, cron, zone) }
      known.set(id, schedule)
      delivering.register(toWork(schedule))
      if (began) await store(schedule)
    },
    async remove(id) {
      if (known.delete(id)) delivering.unregister('timer', nameOf(id))
      return database.transaction(
        async (tx) => {
          await lockSchedule(tx, id)
          await removeNext(tx, nameOf(id))
          return deleteSchedule(tx, id)
        },
        { isolation: 'read committed' },
      )
    },
    list: () => selectSchedules(database),
    async begin() {
      began = true
      for (const schedule of known.values()) await store(schedule)
    },
  }
}

function check(options: ScheduleOptions): ScheduleOptions {
  const { id } = options
  if (typeof id !== 'string' || !/^[\w:.-]{1,200}$/.test(id))
    throw refused(String(id).slice(0, 80), 'needs an `id` of 1 to 200 letters, digits and _ : . -')
  if ((options.emit === undefined) === (options.execute === undefined))
    throw refused(id, 'needs either `emit` or `execute`')
  return options
}

function refused(id: string, fault: string): AftercommitError {
  return new AftercommitError('BAD_OPTION', `Schedule "${id}" ${fault}, so it was not added.`)
}

function noTime(id: string): AftercommitError {
  return refused(id, 'has a cron expression that never comes')
}

function nameOf(id: string): string {
  return `schedule:${id}`
}

function describe({ emit, execute }: ScheduleOptions): string {
  if (execute) return `execute ${execute.workflow.type}`
  return typeof emit === 'function' ? 'emit' : `emit ${emit?.type}`
}

function toLetterEvent(schedule: string, id: string, at: Date, payload: unknown): AftercommitEvent {
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
    occurredAt: at,
    recordedAt: at,
  })
}
