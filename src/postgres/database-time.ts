/**
 * Wall time by the clock of the database. Hosts disagree by minutes and their clocks jump; signatures that receivers check, ages of
 * events and `--since` need one time for all processes. The database is asked once a minute, and the clock that never jumps
 * counts between two answers. Before the first answer the time is that of the host.
 */
import { type Clock, createLoop, formatDuration, type PartOptions, type Service } from '../runtime/index.ts'
import type { Database } from './database.ts'
import { clockSkew } from './inspect.ts'
import { selectTime } from './statements.ts'

export interface DatabaseTime {
  /** The clock of the host, except that `now` follows the database. */
  readonly clock: Clock
  /** Asks once before `start` resolves, then every minute. */
  readonly service: Service
}

export interface DatabaseTimeParts extends PartOptions {
  readonly database: Pick<Database, 'control'>
  /** Of the host. */
}

const EVERY_MS = 60_000
/** From here on the host is told to be wrong: receivers of signed calls allow some minutes. */
const TOLD_FROM_MS = 30_000

export function createDatabaseTime({
  database,
  clock: host,
  logger,
  metrics,
  health,
}: DatabaseTimeParts): DatabaseTime {
  let known: { readonly databaseMs: number; readonly atMs: number } | undefined
  let skewMs = 0
  let isTold = false
  metrics
    .gauge({
      name: 'aftercommit_clock_skew_seconds',
      help: 'How far the clock of the database is ahead of that of this host; negative when it is behind.',
    })
    .collect(() => [{ labels: {}, value: skewMs / 1_000 }])

  async function ask(): Promise<void> {
    const [askedMs, before] = [host.now().getTime(), host.monotonic()]
    const databaseMs = await selectTime(database.control)
    const after = host.monotonic()
    known = { databaseMs, atMs: (before + after) / 2 }
    // Not by a second look at the wall clock of the host, which may have jumped meanwhile.
    skewMs = clockSkew(databaseMs, askedMs, askedMs + (after - before))
    tell()
  }

  function tell(): void {
    const isWrong = Math.abs(skewMs) > TOLD_FROM_MS
    if (isWrong === isTold) return
    isTold = isWrong
    const fields = { skew_seconds: Math.round(skewMs / 1_000) }
    if (!isWrong) {
      logger.info(fields, 'the clocks of this host and of the database agree again')
      return
    }
    const direction = skewMs > 0 ? 'behind' : 'ahead of'
    logger.warn(
      fields,
      `the clock of this host is ${formatDuration(Math.abs(skewMs))} ${direction} that of the database, whose time is used; run a time ` +
        'service (chrony, systemd-timesyncd)',
    )
  }

  const loop = createLoop({
    name: 'database time',
    clock: host,
    logger,
    metrics,
    health,
    async run({ wait }) {
      for (;;) {
        await wait(EVERY_MS)
        await ask()
      }
    },
  })

  return {
    clock: {
      now: () => (known === undefined ? host.now() : new Date(known.databaseMs + host.monotonic() - known.atMs)),
      monotonic: () => host.monotonic(),
      sleep: (ms, signal) => host.sleep(ms, signal),
      setTimer: (ms, callback) => host.setTimer(ms, callback),
    },
    service: {
      name: loop.name,
      get state() {
        return loop.state
      },
      stop: () => loop.stop(),
      async start() {
        // The database was just reached; should it be away again, the loop asks later.
        await ask().catch((error) => logger.debug({ err: error }, 'the database was not asked for its time'))
        await loop.start()
      },
    },
  }
}
