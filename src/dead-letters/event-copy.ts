import {
  type AftercommitEvent,
  fromWire,
  parseJson,
  stringifyJson,
  toStoredEvent,
  toWire,
  Undecodable,
  type WireEvent,
  whyUndecodable,
} from '../events/index.ts'

/**
 * An event as it is copied beside a letter. Its own limits were checked when it was appended. An event that could not be
 * read is copied as the reason and the beginning of what was stored; the log keeps the whole until its retention ends.
 */
export function copyEvent(event: AftercommitEvent): string {
  const wire = toWire(event)
  const why = whyUndecodable(event)
  const copied =
    why === undefined ? wire : { ...wire, payload: toCopied(why), changes: null, previous: null, metadata: {} }
  return stringifyJson(copied, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'event' })
}

export function eventOfCopy(text: string): AftercommitEvent {
  const wire = parseJson(text, { maxDepth: 1_010 }) as WireEvent
  const { [UNDECODABLE]: reason, raw } = (wire.payload ?? {}) as Record<string, unknown>
  if (typeof reason === 'string') {
    return fromWire({ ...wire, payload: new Undecodable(reason, typeof raw === 'string' ? raw : '') })
  }
  // Redriven it may be tried several times, and each try is given a copy of its own.
  return toStoredEvent(fromWire(wire))
}

const UNDECODABLE = '$undecodable'

function toCopied({ reason, raw }: Undecodable): Record<string, string> {
  return { [UNDECODABLE]: reason, raw }
}
