/**
 * What an error from a database client means for the one who made the call. SQLSTATEs are named once, here, together
 * with the decision whether trying again can help.
 */
export const SQLSTATE = {
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  lockNotAvailable: '55P03',
  objectInUse: '55006',
  diskFull: '53100',
  queryCanceled: '57014',
  adminShutdown: '57P01',
  crashShutdown: '57P02',
  cannotConnectNow: '57P03',
  databaseDropped: '57P04',
  idleSessionTimeout: '57P05',
  tooManyConnections: '53300',
  readOnlyTransaction: '25006',
  inFailedTransaction: '25P02',
  idleInTransactionTimeout: '25P03',
  transactionTimeout: '25P04',
  uniqueViolation: '23505',
  featureNotSupported: '0A000',
  invalidStatementName: '26000',
  duplicateStatement: '42P05',
  undefinedTable: '42P01',
  undefinedSchema: '3F000',
  duplicateObject: '42710',
  duplicateTable: '42P07',
  duplicateSchema: '42P06',
  insufficientPrivilege: '42501',
} as const

/**
 * - `connection`: the session is gone or could not be had; what was in flight may or may not have happened
 * - `transient`: the server refused this time and the statement had no effect; the same call can succeed later
 * - `permanent`: the same call will fail the same way
 */
export type ErrorClass = 'connection' | 'transient' | 'permanent'

export function classify(error: unknown): ErrorClass {
  const state = sqlstateOf(error)
  if (state !== undefined) return classifyState(state, messageOf(error))
  return causes(error).some(isConnectionFault) ? 'connection' : 'permanent'
}

/** Worth repeating as a whole transaction: nothing was committed and the conflict is with somebody who is now done. */
export function isRepeatable(error: unknown): boolean {
  const state = sqlstateOf(error)
  return state === SQLSTATE.serializationFailure || state === SQLSTATE.deadlockDetected
}

/** The server or the path to it fails for everybody: connections, shutdowns, a full disk, a server that only reads. */
export function isServerFault(error: unknown): boolean {
  const state = sqlstateOf(error)
  if (state === undefined) return false
  if (SERVER_FAULT_STATES.has(state) || SERVER_FAULT_CLASSES.some((start) => state.startsWith(start))) return true
  return isPassingState(state, messageOf(error))
}

/** The server could not write or read its files. */
export function isStorageFault(error: unknown): boolean {
  const state = sqlstateOf(error)
  return state === SQLSTATE.diskFull || state?.startsWith('58') === true
}

/** True when the session cannot be used again, either because it is gone or because the server is ending it. */
export function endsSession(error: unknown): boolean {
  const state = sqlstateOf(error)
  return classify(error) === 'connection' || (state !== undefined && SESSION_ENDING_STATES.has(state))
}

/** The SQLSTATE, wherever the client library put it: on the error, on a cause, or in the metadata of a wrapper. */
export function sqlstateOf(error: unknown): string | undefined {
  for (const link of causes(error)) {
    const meta = link.meta
    const candidates = [link.code, link.originalCode, isRecord(meta) ? meta.code : undefined]
    const state = candidates.find((code) => typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !isOwnCode(code))
    if (typeof state === 'string') return state
  }
  return undefined
}

const SESSION_ENDING_STATES: ReadonlySet<string> = new Set([
  SQLSTATE.adminShutdown,
  SQLSTATE.crashShutdown,
  SQLSTATE.cannotConnectNow,
  SQLSTATE.databaseDropped,
  SQLSTATE.idleSessionTimeout,
  SQLSTATE.idleInTransactionTimeout,
  SQLSTATE.transactionTimeout,
])

/** 08: connections. 57P0: shutdowns and starts. 58: the server's own files. */
const SERVER_FAULT_CLASSES = ['08', '57P0', '58']
const SERVER_FAULT_STATES: ReadonlySet<string> = new Set([
  SQLSTATE.tooManyConnections,
  SQLSTATE.diskFull,
  SQLSTATE.readOnlyTransaction,
])

const TRANSIENT_STATES: ReadonlySet<string> = new Set([
  SQLSTATE.serializationFailure,
  SQLSTATE.deadlockDetected,
  SQLSTATE.lockNotAvailable,
  SQLSTATE.objectInUse,
  SQLSTATE.queryCanceled,
  SQLSTATE.adminShutdown,
  SQLSTATE.crashShutdown,
  SQLSTATE.cannotConnectNow,
  SQLSTATE.idleSessionTimeout,
  SQLSTATE.readOnlyTransaction,
  SQLSTATE.idleInTransactionTimeout,
  SQLSTATE.transactionTimeout,
  SQLSTATE.invalidStatementName,
])

function classifyState(state: string, message: string): ErrorClass {
  if (state.startsWith('08')) return 'connection'
  // 53: out of memory, disk or connections; somebody will make room. 58: the server's own file system.
  if (TRANSIENT_STATES.has(state) || state.startsWith('53') || state.startsWith('58')) return 'transient'
  return isPassingState(state, message) ? 'transient' : 'permanent'
}

/** States that mean something else in general, told apart by their message. */
function isPassingState(state: string, message: string): boolean {
  // A statement planned before an ALTER TABLE: the next attempt is planned afresh.
  if (state === SQLSTATE.featureNotSupported && message.includes('cached plan')) return true
  // A replica that is still replaying says so with a different state for LISTEN and friends.
  return message.includes('during recovery')
}

const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOENT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'DATABASE_UNREACHABLE',
  'POOL_EXHAUSTED',
  'P1001',
  'P1002',
  'P1008',
  'P1017',
])

const CONNECTION_MESSAGES =
  /connection terminated|query read timeout|timeout e(xpired|xceeded)|not queryable|client was closed|server closed the connection|client network socket disconnected/i

function isConnectionFault(link: Record<string, unknown>): boolean {
  if (typeof link.code === 'string' && NETWORK_CODES.has(link.code)) return true
  return typeof link.message === 'string' && CONNECTION_MESSAGES.test(link.message)
}

/** Prisma's own codes have the length of a SQLSTATE; no state of Postgres begins with P1 or P2. */
function isOwnCode(code: string): boolean {
  return /^P[12]\d{3}$/.test(code) || NETWORK_CODES.has(code)
}

/** The error and what caused it, outermost first; bounded, as causes may form a ring. */
function causes(error: unknown): Record<string, unknown>[] {
  const found: Record<string, unknown>[] = []
  const queue = [error]
  while (queue.length > 0 && found.length < 16) {
    const link = queue.shift()
    if (!isRecord(link) || found.includes(link)) continue
    found.push(link)
    const meta = link.meta
    queue.push(link.cause, isRecord(meta) ? meta.driverAdapterError : undefined)
    if (Array.isArray(link.errors)) queue.push(...link.errors)
  }
  return found
}

function messageOf(error: unknown): string {
  return causes(error)
    .map((link) => (typeof link.message === 'string' ? link.message : ''))
    .join('\n')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
