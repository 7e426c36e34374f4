/** Which events a client gets, before anybody is asked: what the feed offers and, within that, what the client asked for. */
import { AftercommitError } from '../errors.ts'
import { boundsOf, compilePatterns, type EventKind } from '../events/index.ts'
import type { AnyEvent, PageFilter } from '../log/index.ts'

export interface Wanted {
  readonly on?: readonly string[] | undefined
  readonly types: readonly string[]
  readonly kinds?: readonly EventKind[] | undefined
  readonly aggregate?: { readonly type: string; readonly id?: string | undefined } | undefined
  readonly tenant?: string | undefined
}

export interface Filter {
  /** The same for two clients that want the same, who then share their batches. */
  readonly key: string
  matches(event: AnyEvent): boolean
  /** What the database can leave out already. */
  readonly page: Omit<PageFilter, 'window'>
}

/** Throws BAD_PATTERN where a client asks for more than matching each event against it may cost. */
export function checkAsked(types: readonly string[]): void {
  compilePatterns(types)
  const refuse = (problem: string) => {
    throw new AftercommitError('BAD_PATTERN', problem)
  }
  if (types.length > MAX_PATTERNS) refuse(`It names more than ${MAX_PATTERNS} patterns.`)
  const long = types.find((type) => type.length > LONGEST || type.split('*').length - 1 > MAX_WILDCARDS)
  if (long === undefined) return
  refuse(`"${long.slice(0, 60)}" is longer than ${LONGEST} characters or has more than ${MAX_WILDCARDS} wildcards.`)
}

const MAX_PATTERNS = 50
const LONGEST = 100
const MAX_WILDCARDS = 4

/** Throws BAD_PATTERN. */
export function compileFilter({ on = ['*'], types, kinds, aggregate, tenant }: Wanted): Filter {
  const isOffered = compileOffer(on)
  const isAsked = compilePatterns(types)
  const isKind = kinds && new Set<string>(kinds)
  return {
    key: JSON.stringify([on, types, kinds, aggregate?.type, aggregate?.id, tenant]),
    page: { types: boundsOf(types.includes('*') ? on : types), tenant },
    matches: (event) =>
      isAsked(event.type) &&
      isOffered(event.type) &&
      (tenant === undefined || event.tenant === tenant) &&
      (aggregate === undefined || event.aggregateType === aggregate.type) &&
      (aggregate?.id === undefined || event.aggregateId === aggregate.id) &&
      (isKind === undefined || isKind.has(event.kind)),
  }
}

/**
 * Events about sessions and about aftercommit itself are offered only by a pattern that names them: `*` is written by
 * people who think of their own events, and would show everybody's sessions to everybody.
 */
function compileOffer(on: readonly string[]): (type: string) => boolean {
  const matches = compilePatterns(on)
  const named = on.filter((pattern) => RESERVED.test(pattern))
  const isNamed = named.length === 0 ? () => false : compilePatterns(named)
  return (type) => (RESERVED.test(type) ? isNamed(type) : matches(type))
}

const RESERVED = /^(?:auth|aftercommit)\./
