/**
 * What comes again and again, by a cron expression. The next time of a schedule is a row among the deliveries, unique by its
 * id: of all processes that know it one fires it, and in the same transaction it does what it does and makes the row for
 * the time after. What was due while nobody was there fires once, as soon as somebody is. Only the database's clock counts.
 */
import { discardLettersOf } from '../dead-letters/index.ts'
import type { Delivering } from '../delivery/index.ts'
import { type Transaction, withRetry } from '../postgres/index.ts'
import { readCron } from './cron.ts'
import {
  checkSchedule,
  describeAction,
  type KnownSchedule,
  nameOfSchedule,
  refused,
  type ScheduleOptions,
} from './schedule.ts'
import { addFiring, type FiringParts, scheduleWork } from './schedule-firing.ts'
import {
  deleteSchedule,
  hasFirings,
  lockSchedule,
  removeFirings,
  removeNext,
  type StoredSchedule,
  saveSchedule,
  selectNext,
  selectSchedules,
} from './schedule-statements.ts'

export interface Schedules {
  /**
   * Known to this process from now on; stored when the process starts, or at once when it has. Whoever stores it last says
   * when it comes, for every process.
   */
  add(schedule: ScheduleOptions): Promise<void>
  /** Never again, unless a process adds it again; its dead letters are discarded. False when there is none. */
  remove(id: string): Promise<boolean>
  list(): Promise<StoredSchedule[]>
}

export interface SchedulesPart extends Schedules {
  /** Stores what was added so far. */
  begin(): Promise<void>
}

export interface SchedulesOptions extends FiringParts {
  readonly delivering: Pick<Delivering, 'add' | 'register' | 'unregister'>
}

export function createSchedules(options: SchedulesOptions): SchedulesPart {
  const { database, delivering } = options
  const known = new Map<string, KnownSchedule>()
  let began = false

  /** Repeated where it meets a firing that is made a dead letter: that one has its row first, and then the schedule. */
  const transact = <T>(work: (tx: Transaction) => Promise<T>) =>
    withRetry(() => database.transaction(work, { isolation: 'read committed' }), { clock: database.clock })

  /** The same schedule is stored by many processes; one that is unchanged keeps its time. */
  const store = ({ id, cron, zone, times, ...action }: KnownSchedule) =>
    transact(async (tx) => {
      const now = await lockSchedule(tx, id)
      const [stored] = await selectSchedules(tx, id)
      const next = await selectNext(tx, nameOfSchedule(id))
      const isSame = stored?.cron === cron && stored.zone === zone
      // What was due before the change fires yet, and goes on with the new time.
      const kept = isSame || (next !== undefined && next <= now) ? next : undefined
      const nextAt = kept ?? times.next(now)
      if (nextAt === undefined) throw refused(id, 'has a cron expression that never comes')
      await saveSchedule(tx, { id, cron, zone, action: describeAction(action), nextAt })
      if (kept) return
      await removeNext(tx, nameOfSchedule(id))
      await addFiring(delivering, tx, id, nextAt)
    })

  function forget(id: string): void {
    if (known.delete(id)) delivering.unregister('timer', nameOfSchedule(id))
  }

  return {
    async add(schedule) {
      const { id, cron, zone = 'UTC' } = checkSchedule(schedule)
      const times = await readCron(id, cron, zone)
      if (known.has(id)) throw refused(id, 'is added twice in this process')
      const added = { ...schedule, zone, times }
      known.set(id, added)
      delivering.register(scheduleWork(added, options))
      if (!began) return
      try {
        await store(added)
      } catch (error) {
        // So that it can be added again.
        forget(id)
        throw error
      }
    },
    remove(id) {
      forget(id)
      return transact(async (tx) => {
        await lockSchedule(tx, id)
        // Letters first: one that is made a row again meanwhile is found among the rows then.
        await discardLettersOf(tx, 'timer', nameOfSchedule(id), 'the schedule was removed')
        do await removeFirings(tx, nameOfSchedule(id))
        while (await hasFirings(tx, nameOfSchedule(id)))
        return deleteSchedule(tx, id)
      })
    },
    list: () => selectSchedules(database),
    async begin() {
      began = true
      for (const schedule of known.values()) await store(schedule)
    },
  }
}
