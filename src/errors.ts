import { printableLines } from './printable.ts'

/**
 * The one base class of every error this library throws on purpose, and the list of its codes.
 * A code is a stable word that programs may branch on; docs/reference/errors.md has a section for each.
 * A subclass exists only where someone branches on its data.
 */
export const ERROR_CODES = [
  // configuration and environment
  'BAD_OPTION',
  'CAPTURE_REFUSED',
  'BAD_DURATION',
  'BAD_CONFIG',
  'NO_DATABASE',
  'EMBEDDED_MISSING',
  'EMBEDDED_IN_PRODUCTION',
  'PEER_MISSING',
  'DATABASE_UNREACHABLE',
  'POOL_EXHAUSTED',
  'NOT_A_TRANSACTION',
  'OTHER_DATABASE',
  'SCHEMA_TOO_NEW',
  'SCHEMA_TOO_OLD',
  'MIGRATION_CHANGED',
  'MIGRATION_BLOCKED',
  'MIGRATION_FAILED',
  'SERVER_TOO_OLD',
  'STOPPED',
  'STOP_FAILED',
  'TIMED_OUT',
  'LOOP_ENDED',
  // events
  'BAD_DEFINITION',
  'UNKNOWN_EVENT',
  'BAD_EVENT_NAME',
  'BAD_PATTERN',
  'BAD_EVENT',
  'BAD_JSON',
  'INVALID_PAYLOAD',
  'PAYLOAD_TOO_LARGE',
  'PAYLOAD_TOO_DEEP',
  'BAD_CLOUDEVENT',
  'SCHEMA_VERSION_TOO_NEW',
  'UPCAST_FAILED',
  // the log
  'TOO_DEEP',
  'VERSION_CONFLICT',
  'EVENT_ID_TAKEN',
  'NOT_A_STREAM',
  'STREAM_HAS_PLAIN_EVENTS',
  'OUTCOME_UNKNOWN',
  'TX_ENDED',
  'TX_ABORTED',
  'LOG_UNSAFE',
  'HISTORY_LOST',
  'EVENT_NOT_FOUND',
  'HISTORY_FORKED',
  'NOT_ALLOWED',
  'PROCESS_DIED',
  'UNAUTHORIZED',
  'UNDECODABLE',
  'LEASE_LOST',
  'CLAIM_LOST',
  'EFFECT_CANCELLED',
  'UNKNOWN_DELIVERY',
  'UNKNOWN_DESTINATION',
  'UNKNOWN_SUBSCRIPTION',
  'UNKNOWN_LETTER',
  'NOT_A_HOLDER',
  'NOT_TRANSACTIONAL',
  'NESTED_TRANSACTION',
  'SINK_UNAVAILABLE',
  'BAD_STATE',
  'BAD_ANSWER',
  // hooks
  'NOT_READY',
  'EVENT_NOT_EMITTED',
  // workflows
  'UNKNOWN_WORKFLOW',
  'UNIQUE_KEY_TAKEN',
  'WORKFLOW_PAUSED',
  'BAD_DECISION',
  'NO_HANDLER',
  // observers
  'BAD_SIGNATURE',
  'BAD_PUSH_SUBSCRIPTION',
  'OB001',
  'OB002',
  'OB003',
  'OB004',
  'OB005',
  'OB006',
  'OB007',
  'OB008',
  'OB009',
  'OB010',
  'OB011',
  'OB012',
  'OB013',
  'OB014',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

export class AftercommitError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    // Messages quote names of events, keys and files, and end up in terminals.
    super(printableLines(message), options)
    this.name = new.target.name
    this.code = code
  }
}
