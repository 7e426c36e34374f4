/** Turns what a compiler or an action type throws into something that can be pointed at in the file. */
import type { Found, Path } from '../../configuration/index.ts'
import { AftercommitError } from '../../errors.ts'

/** Anything that is no error of ours is a bug and passes. */
export function toFound(error: unknown, path: Path): Found[] {
  if (!(error instanceof AftercommitError)) throw error
  const { mistakes } = error as { mistakes?: unknown }
  if (Array.isArray(mistakes)) return mistakes.flatMap((one) => toFound(one, path))
  const full = [...path, ...pathOf(error)]
  const { cause } = error
  // An error of an action carries that of its template: the template knows the place, and says it in fewer words.
  const source = cause instanceof AftercommitError && offsetOf(cause) !== undefined ? cause : error
  return [{ path: full, at: 'value', message: messageOf(source), offset: offsetOf(source) }]
}

function pathOf(error: AftercommitError): readonly PropertyKey[] {
  const { path } = error as { path?: unknown }
  return Array.isArray(path) ? path.filter((part) => typeof part === 'string' || typeof part === 'number') : []
}

function offsetOf(error: AftercommitError): number | undefined {
  const { offset } = error as { offset?: unknown }
  return typeof offset === 'number' ? offset : undefined
}

/** Without a frame of its own: the line of the file is shown instead. */
function messageOf(error: AftercommitError): string {
  const { problem, reason, suggestion } = error as { problem?: unknown; reason?: unknown; suggestion?: unknown }
  const short = [problem, reason].find((text) => typeof text === 'string')
  if (short === undefined) return error.message.split('\n\n')[0] ?? ''
  return `${short}.${typeof suggestion === 'string' ? ` Did you mean "${suggestion}"?` : ''}`
}
