/** What is said when a command fails: what happened, what to do, the code; and the exit code that goes with it. */
import type { ConfigError } from '../configuration/index.ts'
import { AftercommitError, type ErrorCode } from '../errors.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { toJsonText } from './json.ts'
import type { Output } from './output.ts'

/** The command line was wrong in a way that only the command could see. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const EXIT_CODES: Partial<Record<ErrorCode, ExitCode>> = {
  BAD_PATTERN: EXIT.usage,
  BAD_EVENT: EXIT.usage,
  BAD_EVENT_NAME: EXIT.usage,
  BAD_JSON: EXIT.usage,
  UNKNOWN_DESTINATION: EXIT.usage,
  BAD_CONFIG: EXIT.configuration,
  BAD_OPTION: EXIT.configuration,
  BAD_DURATION: EXIT.configuration,
  NO_DATABASE: EXIT.configuration,
  EMBEDDED_MISSING: EXIT.configuration,
  EMBEDDED_IN_PRODUCTION: EXIT.configuration,
  DATABASE_UNREACHABLE: EXIT.unreachable,
}

export async function reportFailure(error: unknown, output: Output): Promise<ExitCode> {
  const { summarizeError } = await import('../runtime/index.ts')
  const explained = await explain(error)
  const { message, code, stack } = summarizeError(explained, { stack: true })
  if (output.json) {
    const mistakes = isConfigError(explained) ? { mistakes: explained.mistakes } : {}
    output.warn(toJsonText({ error: { code: code ?? null, message: message.split('\n\n')[0], ...mistakes } }))
  } else {
    const { red, bold, dim } = output.talkColors
    output.warn(`${red(bold('Error:'))} ${message}`)
    if (code !== undefined) output.warn(`${bold('Code:')}  ${code}`)
    if (output.verbose && stack !== undefined) output.warn(dim(stack))
  }
  return exitCodeOf(explained)
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return EXIT.usage
  return (error instanceof AftercommitError && EXIT_CODES[error.code]) || EXIT.failure
}

/** By its code: the class is loaded only with a configuration to check. */
function isConfigError(error: unknown): error is ConfigError {
  return error instanceof AftercommitError && error.code === 'BAD_CONFIG' && 'mistakes' in error
}

/** Two answers of Postgres mean something that our own words say better. */
async function explain(error: unknown): Promise<unknown> {
  if (error instanceof AftercommitError || error instanceof UsageError) return error
  const { SQLSTATE, sqlstateOf, classify } = await import('../postgres/index.ts')
  switch (sqlstateOf(error)) {
    case SQLSTATE.insufficientPrivilege:
      return new AftercommitError(
        'NOT_ALLOWED',
        `This database role lacks a right: ${(error as Error).message}. As the owner, run: aftercommit migrate --grant-run <role>`,
        { cause: error },
      )
    case SQLSTATE.undefinedTable:
    case SQLSTATE.undefinedSchema:
    case UNDEFINED_FUNCTION:
      return new AftercommitError(
        'SCHEMA_TOO_OLD',
        'The log is not installed in this schema, or too old for this aftercommit. Run: aftercommit migrate',
        { cause: error },
      )
  }
  if (classify(error) !== 'connection') return error
  return new AftercommitError(
    'DATABASE_UNREACHABLE',
    `The connection to the database was lost: ${(error as Error).message}. Check that the server runs, then repeat.`,
    { cause: error },
  )
}

const UNDEFINED_FUNCTION = '42883'
