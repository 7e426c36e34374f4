import { AftercommitError } from '../errors.ts'
import { sqlstateOf } from '../postgres/index.ts'

/** What the functions of sql/capture refuse, with their reason; any other error as it is. */
export function refusal(error: unknown): unknown {
  if (sqlstateOf(error) !== 'AC017') return error
  return new AftercommitError('CAPTURE_REFUSED', error instanceof Error ? error.message : String(error), {
    cause: error,
  })
}
