/** Starts and stops the parts of an instance, in order. What may go wrong on the way must leave nothing open behind it. */
import { setMaxListeners } from 'node:events'
import type { DatabaseAddress } from './database-address.ts'
import type { createDelivering } from './delivery/index.ts'
import { AftercommitError } from './errors.ts'
import type { createHooks } from './hooks/index.ts'
import type { DrainResult, StartOptions } from './instance.ts'
import type { createLive } from './live/index.ts'
import { type createFollowing, settledPosition } from './log/index.ts'
import type { createObservers } from './observers-on-demand.ts'
import { assertSchemaUsable, type Database, SQLSTATE, sqlstateOf, waitUntilReachable } from './postgres/index.ts'
import { abortable, type DrainLimit, type Duration, type Health, type Service, toMs } from './runtime/index.ts'
import type { createRelays, createSubscriptions } from './subscriptions/index.ts'
import type { createSchedules } from './workflows/index.ts'

export interface LifetimeParts {
  readonly database: Database
  readonly address: Pick<DatabaseAddress, 'release'>
  readonly health: Health
  readonly drainLimit: DrainLimit
  readonly following: ReturnType<typeof createFollowing>
  /** Renewed for as long as the process works. */
  readonly processLease: Service
  readonly background: Service
  readonly observing: ReturnType<typeof createObservers>
  readonly schedules: ReturnType<typeof createSchedules>
  readonly hooks: ReturnType<typeof createHooks>
  readonly subscriptions: ReturnType<typeof createSubscriptions>
  readonly relays: ReturnType<typeof createRelays>
  readonly delivering: ReturnType<typeof createDelivering>
  readonly live: ReturnType<typeof createLive>
  /** Learns what stands in the database and changes how this process works. */
  readonly learn: () => Promise<void>
}

export function createLifetime(parts: LifetimeParts) {
  const { database, health, drainLimit, following, background, observing, hooks, subscriptions, relays, delivering } =
    parts
  const { clock } = database
  const stopping = new AbortController()
  // Every reader that is starting listens to it.
  setMaxListeners(0, stopping.signal)
  const starts = new Set<Promise<void>>()
  let usable: Promise<void> | undefined
  let stopped = false
  /** Set once the schema was migrated beyond this process. */
  let ending: Promise<void> | undefined

  /** Once per instance: a process whose code does not fit the schema must not go on. */
  function ensureUsable(): Promise<void> {
    usable ??= assertSchemaUsable(database).catch((error) => {
      usable = undefined
      throw error
    })
    return usable
  }

  /** A process may be started before its database: it waits, and says that it is not ready. */
  async function untilReachable(): Promise<void> {
    const onRetry = () =>
      health.report({ name: 'database', live: true, ready: false, reason: 'the database is not reachable yet' })
    await waitUntilReachable(database, { signal: stopping.signal, onRetry })
    health.forget('database')
  }

  async function follow(): Promise<void> {
    if (stopped) {
      throw new AftercommitError('STOPPED', 'This instance was stopped, so it was not started again. Create a new one.')
    }
    await untilReachable()
    await ensureUsable()
    stopping.signal.throwIfAborted()
    await following.service.start()
    await abortable(following.tailer.started, stopping.signal)
  }

  async function run({ only }: StartOptions): Promise<void> {
    await follow()
    if (only) subscriptions.only(only)
    await parts.processLease.start()
    await parts.learn()
    await background.start()
    await observing.begin()
    await parts.schedules.begin()
    stopping.signal.throwIfAborted()
    // Before subscriptions: what is served after `start()` finds its caches loaded.
    await abortable(hooks.service.start(), stopping.signal)
    await subscriptions.service.start()
    await observing.confirm()
    await delivering.service.start()
  }

  /** `stop()` waits for it: nothing is started behind its back. */
  function underway(starting: Promise<void>): Promise<void> {
    starts.add(starting)
    return starting.finally(() => starts.delete(starting))
  }

  const start = (options: StartOptions = {}) =>
    underway(run(options).catch((error) => Promise.reject(explained(error))))

  async function stopSubscriptions(): Promise<void> {
    drainLimit.begin()
    await endAll(
      () => subscriptions.service.stop(),
      () => hooks.service.stop(),
      () => delivering.service.stop(),
      () => background.stop(),
      () => parts.processLease.stop(),
    )
  }

  return {
    /**
     * The schema was migrated beyond this process: its work ends and its health is not ready. Whatever it still emits is
     * refused by the schema.
     */
    outgrown(): void {
      if (ending !== undefined || stopped) return
      const reason = 'the schema was migrated by a newer aftercommit, which this version must not write to'
      health.report({ name: 'schema', live: true, ready: false, reason })
      database.logger.error({ code: 'SCHEMA_TOO_NEW' }, `${reason}, so its work ends here; deploy the newer version`)
      usable = undefined
      ending = Promise.allSettled(starts)
        .then(stopSubscriptions)
        .catch((error) => database.logger.error({ err: error }, 'the work of this process did not end in time'))
    },

    /** The one reader of the log, for those who need nothing else. */
    ensureTailer: () => underway(follow()),
    start,

    /** For places where nothing runs for long: works off what is there now, then ends what it began. */
    async drain({ timeout = '30s' }: { timeout?: Duration } = {}): Promise<DrainResult> {
      const deadline = clock.monotonic() + toMs(timeout, 'timeout')
      await start()
      const head = await settledPosition(database)
      const isQuiet = () => subscriptions.reached(head) && delivering.quiet
      // In the order in which one leads to the next, and from the beginning: a redriven event may have asked for a delivery.
      const isDone = async () =>
        isQuiet() && !(await subscriptions.hasRedriven()) && !(await delivering.isBehind()) && isQuiet()
      let drained = await isDone()
      while (!drained && clock.monotonic() < deadline) {
        await clock.sleep(5)
        drained = await isDone()
      }
      await stopSubscriptions()
      return { drained, head }
    },

    async stop(): Promise<void> {
      if (stopped) return
      stopped = true
      stopping.abort(new AftercommitError('STOPPED', 'aftercommit was stopped before its database could be reached.'))
      await Promise.allSettled(starts)
      await ending
      hooks.broadcaster.close()
      await endAll(
        () => parts.live.stop(),
        stopSubscriptions,
        () => observing.stop(),
        () => relays.close(),
        () => following.service.stop(),
        () => database.close(),
        () => parts.address.release(),
      )
    },
  }
}

/** One after the other, all of them: what does not end in time must not keep the rest open. Throws the first failure. */
async function endAll(...steps: (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of steps) await step().catch((error) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** A right that is lacking, with the command that grants it; anything else as it is. */
function explained(error: unknown): unknown {
  if (error instanceof AftercommitError || sqlstateOf(error) !== SQLSTATE.insufficientPrivilege) return error
  return new AftercommitError(
    'NOT_ALLOWED',
    `aftercommit did not start, because its database role lacks a right: ${(error as Error).message}. As the owner of the schema, ` +
      'run: aftercommit migrate --grant-run <role>',
    { cause: error },
  )
}
