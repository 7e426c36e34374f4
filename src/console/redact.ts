/**
 * What a role may see of an answer, in one place for all routes. An operator sees payloads and no users of events. A viewer sees
 * neither payloads nor anything that may quote one: messages of errors, answers of receivers, values that decided, keys.
 */
import type { ConsoleRole } from './access.ts'

export function redactFor(role: ConsoleRole, value: unknown): unknown {
  if (role === 'admin') return value
  return walk(value, '', role === 'viewer')
}

/** Left out. */
const DROPPED = new Set(['payload', 'changes', 'previous', 'request', 'response', 'stack', 'summary'])
/** Left empty, so that a page which shows them shows nothing. */
const BLANKED = new Set(['message', 'why', 'waits_for', 'reason', 'key', 'unique_key'])

function walk(value: unknown, parent: string, isViewer: boolean): unknown {
  if (Array.isArray(value))
    return isViewer && parent === 'parts' ? [] : value.map((item) => walk(item, parent, isViewer))
  if (typeof value !== 'object' || value === null) return value
  if (isViewer && parent === 'metadata') return {}
  const kept: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    if (isViewer && DROPPED.has(name)) continue
    if (isViewer && BLANKED.has(name)) kept[name] = item === null ? null : ''
    else if (isUser(parent, name)) kept[name] = item === null ? null : '[REDACTED]'
    else kept[name] = walk(item, name, isViewer)
  }
  return kept
}

/** Who did it, as an event's metadata and the chain of a workflow carry it. A payload's own fields are data. */
function isUser(parent: string, name: string): boolean {
  if (parent === 'metadata') return name === 'user_id' || name === 'acting_for'
  return parent === 'chain' && name === 'user'
}
