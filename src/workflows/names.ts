/** What things are called where they are stored. */
import { AftercommitError } from '../errors.ts'
import { aggregateKey, checkEventName } from '../events/index.ts'

/** The log's type of an event: `<workflow>.<event.type>`, or `<workflow>.event` for one without a `type`. */
export function eventTypeOf(workflow: string, event: unknown): string {
  const type = `${workflow}.${typeOf(event) ?? 'event'}`
  checkEventName(type)
  return type
}

/** What `events` in a definition goes by. */
export function localType(workflow: string, eventType: string): string {
  return eventType.slice(workflow.length + 1)
}

/**
 * The name under which a worker registers an effect: `<workflow>/<effect>`, or `<workflow>` alone for effects that must
 * keep their order. No workflow type contains a slash, so effects of two workflows never have the same name.
 */
export function effectWorkName(workflow: string, effect: string, ordered: boolean): string {
  return ordered ? workflow : `${workflow}/${effect}`
}

export function effectNameOf(effect: unknown): string {
  return typeOf(effect) ?? 'effect'
}

/** Stable over every try, and readable: which decision of which instance, and which of its effects. */
export function effectIdOf(workflow: string, id: string, version: number, n: number): string {
  return `${aggregateKey(workflow, id)}:${version}.${n}`
}

/** Unique among the timers of a workflow. A key of the user's own can never equal one that was made up. */
export function timerUniqueKey(id: string, key: string): string {
  return JSON.stringify([id, key])
}

/** For a timer without a key of its own: which decision it comes from, and which of its timers. */
export function unnamedTimerKey(id: string, version: number, n: number): string {
  return JSON.stringify([id, version, n])
}

export function typeOf(value: unknown): string | undefined {
  const type = typeof value === 'object' && value !== null ? (value as { type?: unknown }).type : undefined
  return typeof type === 'string' ? type : undefined
}

export function checkInstanceId(workflow: string, id: unknown): asserts id is string {
  if (isName(id)) return
  throw new AftercommitError(
    'BAD_OPTION',
    `\`id\` of workflow "${workflow}" gave something else than 1 to 255 characters of text, so the input was not taken.`,
  )
}

export function checkInputId(id: unknown): asserts id is string {
  if (isName(id)) return
  throw new AftercommitError(
    'BAD_OPTION',
    '`inputId` must be 1 to 255 characters that Postgres can keep, so the input was not taken.',
  )
}

function isName(text: unknown): text is string {
  if (typeof text !== 'string' || text === '' || text.length > 255) return false
  return PLAIN.test(text) || !(text.includes('\0') || /\p{Surrogate}/u.test(text))
}

/** What nearly every id is made of. */
const PLAIN = /^[ -~]+$/
