/**
 * Every failure of the launcher has a code that programs may branch on, and a message that says what to do next.
 * Messages never carry the server's password.
 */
const EMBEDDED_ERROR_CODES = [
  'BAD_OPTION',
  'UNSUPPORTED_PLATFORM',
  'BINARIES_MISSING',
  'OTHER_VERSION',
  'NO_PERMISSION',
  'NO_SPACE',
  'SOCKET_PATH_TOO_LONG',
  'INITDB_FAILED',
  'START_FAILED',
  'STOP_FAILED',
] as const

export type EmbeddedErrorCode = (typeof EMBEDDED_ERROR_CODES)[number]

export class EmbeddedError extends Error {
  readonly code: EmbeddedErrorCode

  constructor(code: EmbeddedErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'EmbeddedError'
    this.code = code
  }
}

/** What a system error or a line of a server log is about, when it is one of the causes a person can remove. */
export function classify(text: string): 'NO_SPACE' | 'NO_PERMISSION' | undefined {
  if (/ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i.test(text)) return 'NO_SPACE'
  if (/EACCES|EPERM|EROFS|Permission denied|Operation not permitted|Read-only file system/i.test(text)) {
    return 'NO_PERMISSION'
  }
  return undefined
}

const advice = {
  NO_SPACE: 'The disk is full: free some space there, or set AFTERCOMMIT_DATA_DIR to a folder on another disk.',
  NO_PERMISSION:
    'The operating system refused access: give this user the folder, or set AFTERCOMMIT_DATA_DIR to one it may write to.',
}

/** Turns whatever failed during `what` into an EmbeddedError; one that already is passes through unchanged. */
export function toEmbeddedError(
  error: unknown,
  what: string,
  otherwise: 'INITDB_FAILED' | 'START_FAILED' | 'STOP_FAILED',
): EmbeddedError {
  if (error instanceof EmbeddedError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return failure(what, reason, otherwise, error)
}

/** An EmbeddedError for `what`, with the reason quoted and advice where the reason is a known one. */
export function failure(
  what: string,
  reason: string,
  otherwise: 'INITDB_FAILED' | 'START_FAILED' | 'STOP_FAILED',
  cause?: unknown,
): EmbeddedError {
  const known = classify(reason)
  const message = `${what} failed. ${known ? `${advice[known]} ` : ''}It said: ${reason.trim() || '(nothing)'}`
  return new EmbeddedError(known ?? otherwise, message, { cause })
}
