/** What a walk over history reads: of which types, and since when. */
import { AftercommitError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/index.ts'

/** Many patterns cost the database more than the events they keep away. */
const MOST_PATTERNS = 50

/** Undefined for everything. */
export function patternsOf(rules: readonly { readonly on: readonly string[] }[]): string[] | undefined {
  const patterns = [...new Set(rules.flatMap(({ on }) => on))].sort()
  return patterns.length > MOST_PATTERNS || patterns.includes('*') ? undefined : patterns
}

/** `consequence` ends the message: what was not done because of it. */
export function toTime(since: Date | Duration, now: Date, consequence: string): Date {
  const time = since instanceof Date ? since : new Date(now.getTime() - toMs(since, 'since'))
  if (Number.isFinite(time.getTime())) return time
  throw new AftercommitError('BAD_OPTION', `\`since\` must be a valid Date, or a duration like "7d"; ${consequence}.`)
}
