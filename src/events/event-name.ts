import { AftercommitError } from '../errors.ts'
import { closest } from './closest.ts'
import { quoted } from './quoted.ts'

/**
 * Event names: lower-case words joined by dots, past tense by convention (`order.placed`, `invoice.payment_failed`).
 * A last segment `vN` is the version of the schema, not a part of what the event is: routing and kinds ignore it.
 */
const MAX_EVENT_NAME_LENGTH = 200

export function isEventName(name: string): boolean {
  if (wellFormed.has(name)) return true
  if (name.length > MAX_EVENT_NAME_LENGTH || !NAME.test(name)) return false
  if (wellFormed.size < 1_000) wellFormed.add(name)
  return true
}

/** A program emits the same few names over and over. */
const wellFormed = new Set<string>()

/** Throws BAD_EVENT_NAME, with a suggestion where there is an obvious one. */
export function checkEventName(name: unknown): asserts name is string {
  const fault = eventNameFault(name)
  if (fault !== undefined) throw new AftercommitError('BAD_EVENT_NAME', `${quoted(name)} ${fault}`)
}

/** What is wrong with a name, as the rest of a sentence that begins with it; undefined when nothing is. */
export function eventNameFault(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'is not an event name: names are text.'
  if (isEventName(name)) return undefined
  if (name.length > MAX_EVENT_NAME_LENGTH) {
    return `is not an event name: names have at most ${MAX_EVENT_NAME_LENGTH} characters.`
  }
  const rule = 'lower-case words of letters, digits and _, joined by dots, such as "order.placed"'
  const suggestion = suggestName(name)
  return `is not an event name: names are ${rule}.${suggestion ? ` Did you mean "${suggestion}"?` : ''}`
}

/** The name without its `.vN`: what patterns, kinds and definitions go by. */
export function baseName(type: string): string {
  const dot = versionDot(type)
  return dot < 0 ? type : type.slice(0, dot)
}

/** The N of a `.vN` suffix; undefined for a name without one. */
export function versionSuffix(type: string): number | undefined {
  const dot = versionDot(type)
  return dot < 0 ? undefined : Number(type.slice(dot + 2))
}

export type EventKind = 'created' | 'updated' | 'deleted' | 'custom'

/** `order.created`, `order_created` and `order.created.v2` are all of the kind created. */
export function kindOf(type: string): EventKind {
  const base = baseName(type)
  const last = base.slice(base.lastIndexOf('.') + 1)
  const word = last.slice(last.lastIndexOf('_') + 1)
  return word === 'created' || word === 'updated' || word === 'deleted' ? word : 'custom'
}

/** Somebody named an event that the catalogue does not have. */
export class UnknownEventError extends AftercommitError {
  readonly eventName: string
  readonly closest: string | undefined

  constructor(eventName: string, knownNames: Iterable<string>) {
    const near = closest(eventName, knownNames)
    super(
      'UNKNOWN_EVENT',
      `No event named ${quoted(eventName)} is defined, so nothing was emitted.` +
        (near === undefined ? ' Add it to defineEvents.' : ` Did you mean "${near}"?`),
    )
    this.eventName = eventName
    this.closest = near
  }
}

const NAME = /^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$/

/** Where the `.vN` begins, or -1. By hand because it runs for every event read: most names end at the first check. */
function versionDot(type: string): number {
  let at = type.length - 1
  while (at >= 0 && isDigit(type.charCodeAt(at))) at--
  if (at === type.length - 1 || at < 1) return -1
  const leadingZero = type.charCodeAt(at + 1) === 48
  return !leadingZero && type[at] === 'v' && type[at - 1] === '.' ? at - 1 : -1
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

function suggestName(name: string): string | undefined {
  const suggestion = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[:/]/g, '.')
    .replace(/[^a-z0-9_.]/g, '_')
    .split('.')
    .map(trimSegment)
    .filter((segment) => segment !== '')
    .join('.')
  return isEventName(suggestion) && suggestion !== name ? suggestion : undefined
}

/** Drops what a segment may not begin with, and the underscores that replaced other characters at its ends. */
function trimSegment(segment: string): string {
  let start = 0
  let end = segment.length
  while (start < end && !/[a-z]/.test(segment[start]!)) start++
  while (end > start && segment[end - 1] === '_') end--
  return segment.slice(start, end)
}
