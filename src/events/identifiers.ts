import { uuidv7 } from 'uuidv7'
import { AftercommitError } from '../errors.ts'
import { isWellFormed } from './well-formed.ts'

/**
 * The short texts that name things: event ids, aggregates, tenants. One rule for all of them: 1 to 255 characters that
 * Postgres can keep. Event ids also travel in headers and log lines, so they have no control characters.
 */
export function newEventId(): string {
  return uuidv7()
}

export function checkEventId(id: unknown): asserts id is string {
  check('The event id', typeof id === 'string' && CONTROL.test(id) ? 'holds a control character' : textProblem(id))
}

export function checkAggregate(aggregate: { type: unknown; id: unknown }): void {
  check('The aggregate type', textProblem(aggregate.type))
  check('The aggregate id', textProblem(aggregate.id))
}

export function checkTenant(tenant: unknown): asserts tenant is string {
  check('The tenant', textProblem(tenant))
}

/** What is wrong with such a text, as the rest of a sentence; undefined when nothing is. */
export function textProblem(text: unknown): string | undefined {
  if (typeof text !== 'string') return `is ${text === null ? 'null' : `of type ${typeof text}`} where text is needed`
  if (text.length <= MAX_TEXT_LENGTH && PLAIN.test(text)) return undefined
  if (text === '') return 'is empty'
  if (isTooLong(text)) return `is longer than ${MAX_TEXT_LENGTH} characters`
  if (text.includes('\0')) return 'holds U+0000, which Postgres cannot store'
  if (!isWellFormed(text)) return 'holds half of a surrogate pair, which is no character'
  return undefined
}

const MAX_TEXT_LENGTH = 255
/** What nearly every id is made of: one look instead of three. */
const PLAIN = /^[ -~]+$/
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/** Counts characters as Postgres does, where one beyond U+FFFF is one and not two. */
function isTooLong(text: string): boolean {
  if (text.length <= MAX_TEXT_LENGTH) return false
  return text.length > 2 * MAX_TEXT_LENGTH || [...text].length > MAX_TEXT_LENGTH
}

function check(what: string, problem: string | undefined): void {
  if (problem !== undefined) {
    throw new AftercommitError(
      'BAD_EVENT',
      `${what} ${problem}, so nothing was emitted. Give 1 to 255 plain characters.`,
    )
  }
}
