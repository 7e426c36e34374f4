/**
 * One LISTEN connection per process. What it hears is only ever a hint to look: notifications are lost while it is
 * away, and where it cannot work at all the readers poll.
 *
 *   connecting ──▶ listening ──connection lost, or no heartbeat──▶ connecting (after a jittered delay, for ever)
 *       └──▶ unavailable: a pooler takes the session away, or the self-test heard nothing. Said once, asked again later.
 *
 * The same session holds an advisory lock as long as it lives, so that others can tell that this process does.
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
import { quoteIdentifier, type SchemaName, shorten } from './identifiers.ts'
import { detectPath } from './pooler.ts'
import type { Session } from './session.ts'
import { notify, selectBackendPid, trySessionLock } from './statements.ts'

export interface ListenerOptions {
  db: Database
  /** Identifies this process in its session lock. */
  processId: string
  onNotify: (payload: string) => void
  /** Listening began, or began again: whatever was rung in between went unheard. */
  onReconnect: () => void
  /** The lock was gained, maybe not for the first time. */
  onLock?: () => void
  onModeChange?: (mode: ListenerMode, reason: string | undefined) => void
  channel?: string
  heartbeatMs?: number
  /** Also for each statement on the connection. */
  heartbeatTimeoutMs?: number
  selfTestTimeoutMs?: number
  /** How long to poll before asking again whether listening has become possible. */
  retestMs?: number
  metrics?: Registry
  health?: Health
}

export type ListenerMode = 'connecting' | 'listening' | 'unavailable'

export interface Listener extends Service {
  readonly mode: ListenerMode
  /** Why it is unavailable. */
  readonly reason: string | undefined
  readonly holdsLock: boolean
  /** How often the lock was gained: between two of them others may have taken this process for gone. */
  readonly locksGained: number
}

/** The text to hash for the lock that a process holds while its LISTEN connection lives. */
export function sessionLockKey(schema: SchemaName, processId: string): string {
  return schema.lockKey(`process:${processId}`)
}

export function createListener({
  db,
  processId,
  onNotify,
  onReconnect,
  onLock,
  onModeChange,
  channel = db.schemaName.channel,
  heartbeatMs = 10_000,
  heartbeatTimeoutMs = 5_000,
  selfTestTimeoutMs = 5_000,
  retestMs = 300_000,
  metrics,
  health,
}: ListenerOptions): Listener {
  const testChannel = shorten(`${channel}_test_${processId}`)
  const lockKey = sessionLockKey(db.schemaName, processId)
  const open = () => db.openSession('listen', { queryTimeoutMs: heartbeatTimeoutMs })
  let mode: ListenerMode = 'connecting'
  let reason: string | undefined
  let holdsLock = false
  let locksGained = 0

  const loop = createLoop({
    name: 'listener',
    clock: db.clock,
    logger: db.logger,
    async run(context) {
      for (;;) {
        const obstacle = await listen(context)
        setMode('unavailable', obstacle)
        await context.wait(retestMs)
      }
    },
    ...(metrics && { metrics }),
    ...(health && { health }),
  })

  /** Returns only to say why listening is impossible on this path; anything else that goes wrong is thrown. */
  async function listen(context: LoopContext): Promise<string> {
    if (mode !== 'unavailable') setMode('connecting', undefined)
    const session = await openUnless(context.signal)
    const end = () => session.destroy()
    context.signal.addEventListener('abort', end, { once: true })
    try {
      return (await findObstacle(session)) ?? (await keepListening(session, context))
    } finally {
      holdsLock = false
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
    onReconnect()
    for (;;) {
      await wait(heartbeatMs)
      if (lost) throw new AftercommitError('DATABASE_UNREACHABLE', 'The LISTEN connection was lost.', { cause: lost })
      if ((await selectBackendPid(session)) !== pid) return POOLER
      // Its predecessor may not have been buried yet; the server notices a vanished client only after a while.
      if (!holdsLock) await takeLock(session)
    }
  }

  async function takeLock(session: Session): Promise<void> {
    holdsLock = await trySessionLock(session, lockKey)
    if (!holdsLock) return
    locksGained++
    onLock?.()
  }

  function setMode(next: ListenerMode, why: string | undefined): void {
    if (mode === next && reason === why) return
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
    start: () => loop.start(),
    stop: () => loop.stop(),
    get mode() {
      return mode
    },
    get reason() {
      return reason
    },
    get holdsLock() {
      return holdsLock
    },
    get locksGained() {
      return locksGained
    },
  }
}

const POOLER =
  'the connection goes through a pooler in transaction mode; set `directDatabase` to an address past the pooler'
const DEAF =
  'a notification sent through `database` did not arrive; `directDatabase` must lead to the same database, past any pooler'
