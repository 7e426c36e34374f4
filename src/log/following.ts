/**
 * What follows the log in this process: one tailer, one LISTEN connection, one round of upkeep. Started by `start()` or
 * by the first reader, never by emitting alone.
 */
import { createListener, type Database, type ProcessLock, SCHEMA_LEVEL, selectSchemaLevel } from '../postgres/index.ts'
import { LEASE_MS, type ProcessInfo, registerProcess } from '../processes/index.ts'
import { createGroup, createLoop, type PartOptions, type Service } from '../runtime/index.ts'
import { Tailer } from './tailer.ts'
import { runUpkeep } from './upkeep.ts'

export interface FollowingOptions extends PartOptions {
  readonly database: Database
  readonly info: ProcessInfo
  readonly neededFrom: () => Promise<bigint>
  /** A notification with a word of its own, which is not a ring. */
  readonly onWord: (word: string) => void
  /** A ring, or the moment from which every commit will ring: whatever else is woken by the bell looks now. */
  readonly onRing: () => void
  /** This process holds its lock now, maybe again, or cannot hold one here: others see it with other eyes. */
  readonly onLock: () => void
  readonly eventBytes?: number | undefined
  /** A newer version has migrated the schema, and this one must not write to it. */
  readonly onSchemaTooNew: () => void
}

export interface Following {
  readonly tailer: Tailer
  readonly service: Service
  /** Why notifications cannot be heard, if so. */
  bell(): { mode: string; reason: string | undefined }
  lock(): ProcessLock
}

const UPKEEP_MS = 60_000

export function createFollowing(options: FollowingOptions): Following {
  const { database, clock, logger, metrics, health, info, neededFrom, onWord, onRing, onLock, onSchemaTooNew } = options
  let isTooNew = false
  const tailer = new Tailer({
    database,
    clock,
    logger,
    metrics,
    health,
    info,
    canHear: () => listener.mode === 'listening',
    lockKey: () => listener.lockKey,
    onArmed: onRing,
    eventBytes: options.eventBytes,
    async checkSchema() {
      isTooNew = (await selectSchemaLevel(database.control)) > SCHEMA_LEVEL
      if (isTooNew) onSchemaTooNew()
    },
  })
  const listener = createListener({
    db: database,
    processId: info.process,
    onNotify(word) {
      if (word !== '') return onWord(word)
      tailer.ring()
      onRing()
    },
    onReconnect: () => tailer.bellWasLost(),
    recordLock: (session, key) => registerProcess(session, info, key),
    onLock,
    onModeChange: onLock,
    lockLimitMs: LEASE_MS,
    metrics,
    health,
  })
  const upkeep = createLoop({
    name: 'log upkeep',
    clock,
    logger,
    metrics,
    health,
    async run({ wait }) {
      for (;;) {
        await wait(UPKEEP_MS * (0.75 + Math.random() / 2))
        if (!isTooNew) await runUpkeep({ database, logger, neededFrom })
      }
    },
  })
  return {
    tailer,
    service: createGroup({ name: 'log', services: [listener, tailer, upkeep], logger }),
    bell: () => ({ mode: listener.mode, reason: listener.reason }),
    lock: () => ({
      holds: listener.holdsLock,
      possible: listener.mode !== 'unavailable',
      gained: listener.locksGained,
      lacks: listener.lacksLock,
      key: listener.lockKey,
    }),
  }
}
