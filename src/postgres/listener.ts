/**
 * One LISTEN connection per process. What it hears is only ever a hint to look: notifications are lost while it is
 * away, and where it cannot work at all the readers poll.
 *
 *   connecting ──▶ listening ──connection lost, or no heartbeat──▶ connecting (at once if it had worked, else after a
 *       │                                                          jittered delay, for ever)
 *       └──▶ unavailable: a pooler takes the session away, or the self-test heard nothing. Said once, asked again later.
 *
 * The same session holds an advisory lock as long as it lives, so that others can tell that this process does. Each session
 * takes a lock of its own and records its name: on a lost path the server keeps the session before, with its lock, until it
 * notices that nobody is there.
 */
import { randomUUID } from 'node:crypto'
import { AftercommitError } from '../errors.ts'
import {
  abortable,
  createLoop,
  type Health,
  type LoopContext,
  type Registry,
  type Service,
  withTimeout,
} from '../runtime/index.ts'
import type { Database } from './database.ts'
import { quoteIdentifier, shorten } from './identifiers.ts'
import { detectPath } from './pooler.ts'
import type { Queryable } from './queryable.ts'
import type { Session } from './session.ts'
import { sqlstateOf } from './sqlstate.ts'
import { notify, selectBackendPid, trySessionLock } from './statements.ts'

export interface ListenerOptions {
  db: Database
  /** Part of the names of its session locks. */
  processId: string
  onNotify: (payload: string) => void
  /** Listening began, or began again: whatever was rung in between went unheard. */
  onReconnect: () => void
  /** Writes the name of the lock where other processes look for it, through the session that holds the lock. */
  recordLock?: (session: Queryable, key: string) => Promise<void>
  /** The lock was gained and recorded, maybe not for the first time. */
  onLock?: () => void
  onModeChange?: (mode: ListenerMode, reason: string | undefined) => void
  channel?: string
  heartbeatMs?: number
  /** Also for each statement on the connection. */
  heartbeatTimeoutMs?: number
  selfTestTimeoutMs?: number
  /** A process without its lock for this long gives its leases up and is not ready. */
  lockLimitMs?: number
  /** How long to poll before asking again whether listening has become possible. */
  retestMs?: number
  metrics?: Registry
  health?: Health
}

/** The lock that proves this process alive to the others, as it is now. */
export interface ProcessLock {
  readonly holds: boolean
  /** False behind a pooler: no lock can be held there, and others look at the leases alone. */
  readonly possible: boolean
  /** How often it was gained. */
  readonly gained: number
  /** Possible, and missing for longer than a lease lasts. */
  readonly lacks: boolean
  /** Its name; null while it is not held. */
  readonly key: string | null
}

export type ListenerMode = 'connecting' | 'listening' | 'unavailable'

export interface Listener extends Service {
  readonly mode: ListenerMode
  /** Why it is unavailable. */
  readonly reason: string | undefined
  readonly holdsLock: boolean
  /** The name of the lock; null while it is not held. */
  readonly lockKey: string | null
  /** The lock could be held and has been missing for longer than a lease lasts. */
  readonly lacksLock: boolean
  /** How often the lock was gained: between two of them others may have taken this process for gone. */
  readonly locksGained: number
}

export function createListener({
  db,
  processId,
  onNotify,
  onReconnect,
  recordLock,
  onLock,
  onModeChange,
  channel = db.schemaName.channel,
  heartbeatMs = 10_000,
  heartbeatTimeoutMs = 5_000,
  selfTestTimeoutMs = 5_000,
  lockLimitMs = 15_000,
  retestMs = 300_000,
  metrics,
  health,
}: ListenerOptions): Listener {
  const testChannel = shorten(`${channel}_test_${processId}`)
  const open = () => db.openSession('listen', { queryTimeoutMs: heartbeatTimeoutMs })
  let mode: ListenerMode = 'connecting'
  let reason: string | undefined
  let lockKey: string | null = null
  let locksGained = 0
  let lacksLock = false
  let cancelLimit: (() => void) | undefined
  let listeningSince: number | undefined

  const loop = createLoop({
    name: 'listener',
    clock: db.clock,
    logger: db.logger,
    async run(context) {
      for (;;) {
        listeningSince = undefined
        const obstacle = await listen(context).catch((error) => {
          // Whatever the server says arrives: only silence and a broken connection cast doubt on the others.
          if (!context.signal.aborted && sqlstateOf(error) === undefined) db.distrust()
          if (context.signal.aborted || !hasWorked()) throw error
          db.logger.warn({ channel, err: error }, 'the LISTEN connection was lost and is made again')
          return undefined
        })
        if (obstacle === undefined) continue
        setMode('unavailable', obstacle)
        await context.wait(retestMs)
      }
    },
    ...(metrics && { metrics }),
    ...(health && { health }),
  })

  /** Others take a process without its lock for gone after a second: a first loss must not cost a delay. */
  function hasWorked(): boolean {
    return listeningSince !== undefined && db.clock.monotonic() - listeningSince >= WORKED_MS
  }

  /** Returns only to say why listening is impossible on this path; anything else that goes wrong is thrown. */
  async function listen(context: LoopContext): Promise<string> {
    if (mode !== 'unavailable') setMode('connecting', undefined)
    const session = await openUnless(context.signal)
    const end = () => session.destroy()
    context.signal.addEventListener('abort', end, { once: true })
    try {
      return (await findObstacle(session)) ?? (await keepListening(session, context))
    } finally {
      if (lockKey !== null) loseLock()
      end()
      context.signal.removeEventListener('abort', end)
    }
  }

  /** Connecting may take as long as its timeout, and stopping should not: a connection that comes too late is ended. */
  function openUnless(signal: AbortSignal): Promise<Session> {
    const opening = open()
    return abortable(opening, signal).catch((error: unknown) => {
      opening.then((session) => session.destroy()).catch(() => {})
      throw error
    })
  }

  async function findObstacle(session: Session): Promise<string | undefined> {
    if ((await detectPath(session, open)) === 'transaction pooler') return POOLER
    const heard = hear(session)
    await session.query(`listen ${quoteIdentifier(channel)}`)
    await session.query(`listen ${quoteIdentifier(testChannel)}`)
    return (await selfTest(session, heard)) ? undefined : DEAF
  }

  /** Resolves with each test word as it is heard; everything else goes to the owner. */
  function hear(session: Session): (word: string) => Promise<void> {
    const awaited = new Map<string, () => void>()
    session.onNotification((from, payload) => {
      if (from === channel) onNotify(payload)
      else awaited.get(payload)?.()
    })
    return (word) => new Promise((resolve) => awaited.set(word, resolve))
  }

  /** A notification sent the way writers send theirs must arrive here. On a channel of its own, so it wakes nobody. */
  async function selfTest(session: Session, heard: (word: string) => Promise<void>): Promise<boolean> {
    const word = randomUUID()
    const arrival = heard(word)
    await notify(db.control, testChannel, word)
    try {
      await withTimeout(arrival, selfTestTimeoutMs, db.clock, 'The self-test heard nothing')
    } catch {
      // If the connection itself is broken this throws, and it is a matter of connecting again.
      await selectBackendPid(session)
      return false
    }
    await session.query(`unlisten ${quoteIdentifier(testChannel)}`)
    return true
  }

  async function keepListening(session: Session, { wait }: LoopContext): Promise<string> {
    let lost: Error | undefined
    void session.closed.then((error) => {
      lost = error
      loop.wake()
    })
    const pid = await selectBackendPid(session)
    await takeLock(session)
    setMode('listening', undefined)
    listeningSince = db.clock.monotonic()
    onReconnect()
    for (;;) {
      await wait(heartbeatMs)
      if (lost) throw new AftercommitError('DATABASE_UNREACHABLE', 'The LISTEN connection was lost.', { cause: lost })
      if ((await selectBackendPid(session)) !== pid) return POOLER
    }
  }

  /** Held before it is recorded: others must never find the name of a lock that is free. */
  async function takeLock(session: Session): Promise<void> {
    const key = db.schemaName.lockKey(`process:${processId}:${randomUUID()}`)
    if (!(await trySessionLock(session, key))) throw new Error('The lock of a new session was taken already.')
    await recordLock?.(session, key)
    lockKey = key
    locksGained++
    endLimit()
    onLock?.()
  }

  function loseLock(): void {
    lockKey = null
    beginLimit()
  }

  /** The lock is missing from now on. */
  function beginLimit(): void {
    endLimit()
    cancelLimit = db.clock.setTimer(lockLimitMs, () => {
      if (mode === 'unavailable') return
      lacksLock = true
      db.logger.error({}, 'no LISTEN connection for longer than a lease: this process gives up what it has')
      const reason =
        'this process could not prove that it is alive for longer than a lease: it has no LISTEN connection'
      health?.report({ name: LOCK_HEALTH, live: true, ready: false, reason })
    })
  }

  function endLimit(): void {
    cancelLimit?.()
    cancelLimit = undefined
    lacksLock = false
    health?.forget(LOCK_HEALTH)
  }

  function setMode(next: ListenerMode, why: string | undefined): void {
    if (mode === next && reason === why) return
    // Nothing can be proved here: others look at the leases alone.
    if (next === 'unavailable') endLimit()
    if (next === 'unavailable') db.logger.warn({ channel }, `no LISTEN here, so readers poll: ${why}`)
    else if (next === 'listening') db.logger.info({ channel }, 'listening')
    mode = next
    reason = why
    onModeChange?.(mode, reason)
  }

  return {
    name: loop.name,
    get state() {
      return loop.state
    },
    async start() {
      if (loop.state === 'idle' || loop.state === 'stopped') beginLimit()
      await loop.start()
    },
    async stop() {
      await loop.stop().finally(endLimit)
    },
    get mode() {
      return mode
    },
    get reason() {
      return reason
    },
    get holdsLock() {
      return lockKey !== null
    },
    get lockKey() {
      return lockKey
    },
    get lacksLock() {
      return lacksLock
    },
    get locksGained() {
      return locksGained
    },
  }
}

const LOCK_HEALTH = 'process lock'
/** A connection that listened for this long worked. One that is lost sooner is made again after a growing delay. */
const WORKED_MS = 1_000

const POOLER =
  'the connection goes through a pooler in transaction mode; set `directDatabase` to an address past the pooler'
const DEAF =
  'a notification sent through `database` did not arrive; `directDatabase` must lead to the same database, past any pooler'
