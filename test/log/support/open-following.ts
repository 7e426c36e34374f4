/** The part of a process that follows the log, by itself, so that a test can look into its tailer. */
import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { createFollowing, type Following } from '../../../src/log/index.ts'
import { createDatabase, type Database, type DatabaseOptions } from '../../../src/postgres/index.ts'
import { createHealth, createRegistry, type Health, systemClock } from '../../../src/runtime/index.ts'
import { eventually } from '../../support/eventually.ts'
import { collectingLogger } from '../../support/logger.ts'

export interface OpenFollowing extends Following {
  readonly database: Database
  readonly health: Health
  /** What was logged, as `level message`. */
  readonly lines: readonly string[]
  /** Resolves when the tailer has an idle mark and sleeps until it is rung. */
  armed(): Promise<void>
  /** Resolves when everything up to a position was read. */
  reaches(position: bigint): Promise<void>
  /**
   * Whether it is woken by what `emit` commits. The fallback poll may meet an event just before its ring is heard, so one of
   * a few that was rung about is enough; a deaf reader finds each of them by its poll.
   */
  isRung(emit: () => Promise<bigint>): Promise<boolean>
}

export async function openFollowing(options: DatabaseOptions): Promise<OpenFollowing> {
  const { logger, lines } = collectingLogger()
  const { clock = systemClock } = options
  const database = createDatabase({ connectTimeoutMs: 5_000, ...options, logger })
  const metrics = createRegistry({ clock, logger })
  const health = createHealth({ clock })
  const info = { process: randomUUID(), host: 'test', pid: process.pid, version: '0', configHash: '0' }
  const following = createFollowing({
    onRing: () => {},
    onLock: () => {},
    onSchemaTooNew: () => {},
    database,
    clock,
    logger: database.logger,
    metrics,
    health,
    info,
    neededFrom: async () => 0n,
    onWord() {},
  })
  onTestFinished(async () => {
    await following.service.stop()
    await database.close(1_000)
  })
  await following.service.start()
  await following.tailer.started
  const { tailer } = following
  const armed = async () => void (await eventually(() => tailer.status().state === 'armed', { every: 5 }))
  const reaches = async (position: bigint) => void (await eventually(() => tailer.frontier >= position, { every: 2 }))
  return {
    ...following,
    database,
    health,
    lines,
    armed,
    reaches,
    async isRung(emit) {
      for (let n = 0; n < 5; n++) {
        await armed()
        const { foundByFallback } = tailer.status()
        await reaches(await emit())
        if (tailer.status().foundByFallback === foundByFallback) return true
      }
      return false
    },
  }
}
