/**
 * Which observers an event concerns. Patterns are looked at once per event type; from then on it is one lookup, however
 * many observers there are.
 */
import { compilePatterns } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'

export interface Matchable {
  readonly on: readonly string[]
  /** Only events of this aggregate type; null for all. */
  readonly entity: string | null
}

export interface Matching<T extends Matchable> {
  find(event: Pick<AnyEvent, 'type' | 'aggregateType'>): readonly T[]
}

/** Types are few; a program that makes them up by the million must not fill the memory. */
const MOST_TYPES = 10_000

export function createMatching<T extends Matchable>(observers: readonly T[]): Matching<T> {
  const compiled = observers.map((observer) => ({ observer, matches: compilePatterns(observer.on) }))
  const byType = new Map<string, { readonly all: readonly T[]; readonly picky: boolean }>()

  function look(type: string) {
    const all = compiled.filter(({ matches }) => matches(type)).map(({ observer }) => observer)
    const found = { all, picky: all.some(({ entity }) => entity !== null) }
    if (byType.size >= MOST_TYPES) byType.clear()
    byType.set(type, found)
    return found
  }

  return {
    find({ type, aggregateType }) {
      const { all, picky } = byType.get(type) ?? look(type)
      return picky ? all.filter(({ entity }) => entity === null || entity === aggregateType) : all
    },
  }
}
