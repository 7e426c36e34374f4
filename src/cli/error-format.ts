import type { ErrorRecord } from '../index.ts'

/** In one line. `Error` says nothing that the message does not. */
export function formatError(error: ErrorRecord): string {
  const name = error.code ?? (error.name === 'Error' ? undefined : error.name)
  return name === undefined || error.message.startsWith(name) ? error.message : `${name}: ${error.message}`
}
