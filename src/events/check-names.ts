import { AftercommitError } from '../errors.ts'
import { closest } from './closest.ts'
import type { EventDefinitions } from './define-events.ts'

/**
 * Refuses a name in `patterns` that the catalogue lacks and that is nearly one of its names: it would never match, in silence. A
 * name that resembles none may belong to a workflow or to another program, and `auth.*`, `sms.*` and `aftercommit.*` are ours.
 */
export function refuseMisspelt(
  what: string,
  patterns: readonly string[],
  definitions: EventDefinitions | undefined,
  workflows: readonly string[],
): void {
  if (definitions === undefined) return
  for (const name of patterns) {
    if (name.includes('*') || definitions.currentFor(name) !== undefined || OURS.test(name)) continue
    if (workflows.some((type) => name.startsWith(`${type}.`))) continue
    const near = closest(name, definitions.names)
    if (near === undefined) continue
    throw new AftercommitError(
      'UNKNOWN_EVENT',
      `${what} names the event "${name}", which the catalogue does not have, so it was not registered. Did you mean "${near}"?`,
    )
  }
}

const OURS = /^(auth|sms|aftercommit)\./
