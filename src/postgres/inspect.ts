/**
 * What can be known of a server from outside: its settings, what lies around on it, whether its clock agrees with ours,
 * and whether a notification sent to it arrives. Shown by `status` and judged by `doctor`.
 */
import { randomUUID } from 'node:crypto'
import { withTimeout } from '../runtime/index.ts'
import type { Database } from './database.ts'
import { clientConfig, loadDriver, type TargetSource } from './driver.ts'
import { quoteIdentifier, shorten } from './identifiers.ts'
import {
  type PreparedTransaction,
  type ReplicationSlot,
  type ServerSettings,
  selectInactiveSlots,
  selectPreparedTransactions,
  selectServerSettings,
} from './inspect-statements.ts'
import { detectPath, type Path } from './pooler.ts'
import { notify } from './statements.ts'

export interface ServerFacts extends ServerSettings {
  /** How far the server's clock is ahead of ours, beyond what the round trip explains; 0 when they may agree. */
  readonly clockSkewMs: number
  readonly prepared: readonly PreparedTransaction[]
  readonly inactiveSlots: readonly ReplicationSlot[]
  readonly path: Path
  /** Whether a notification sent through `database` was heard at the direct address; null where it was not tried. */
  readonly hearsNotifications: boolean | null
}

export async function inspectServer(db: Database): Promise<ServerFacts> {
  const before = db.clock.now().getTime()
  const settings = await selectServerSettings(db.control)
  const clockSkewMs = clockSkew(settings.timeMs, before, db.clock.now().getTime())
  // Alone: whatever else goes through a pooler at the same time hides which connection it gave to whom.
  const path = await findPath(db)
  const [prepared, inactiveSlots] = await Promise.all([
    selectPreparedTransactions(db.control),
    selectInactiveSlots(db.control),
  ])
  // A standby refuses LISTEN, and behind a transaction pooler it would stay behind on somebody else's connection.
  const mayListen = !settings.standby && path !== 'transaction pooler'
  const hearsNotifications = mayListen ? await hearsNotification(db) : null
  return { ...settings, clockSkewMs, prepared, inactiveSlots, path, hearsNotifications }
}

/** The answer was given somewhere between question and receipt, so a time in between proves nothing. */
export function clockSkew(serverMs: number, askedMs: number, answeredMs: number): number {
  if (serverMs > answeredMs) return serverMs - answeredMs
  return serverMs < askedMs ? serverMs - askedMs : 0
}

export interface Address {
  /** A name, a number, or the folder of a Unix socket. */
  readonly host: string
  readonly port: number
  readonly database: string
}

/** Where connections go, without user and password. */
export async function addressOf(target: TargetSource): Promise<Address> {
  const driver = await loadDriver()
  const settings = { target, ssl: undefined, applicationName: undefined, connectTimeoutMs: 0, queryTimeoutMs: 0 }
  const { host, port, database } = new driver.Client(await clientConfig(driver, settings, 'probe'))
  return { host, port, database: database ?? '' }
}

const PROBE_MS = 5_000

async function findPath(db: Database): Promise<Path> {
  const open = () => db.openSession('probe', { queryTimeoutMs: PROBE_MS })
  const session = await open()
  try {
    return await detectPath(session, open)
  } finally {
    session.destroy()
  }
}

async function hearsNotification(db: Database): Promise<boolean> {
  const session = await db.openSession('probe', { queryTimeoutMs: PROBE_MS })
  try {
    const channel = shorten(`${db.schemaName.channel}_probe_${randomUUID()}`)
    const arrival = new Promise<void>((resolve) => session.onNotification(() => resolve()))
    await session.query(`listen ${quoteIdentifier(channel)}`)
    await notify(db.control, channel, '')
    return await withTimeout(arrival, PROBE_MS, db.clock, 'The probe heard nothing').then(
      () => true,
      () => false,
    )
  } finally {
    session.destroy()
  }
}
