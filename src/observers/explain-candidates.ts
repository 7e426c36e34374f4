/** Who is asked about an event: by versions in force then and now, and by what this process has. Pure. */
import type { ObserverConfig } from './config/index.ts'
import type { Rule } from './explain-rule.ts'
import type { ObserverVersion } from './registry-statements.ts'

/** What became of the version that was in force; added: none was. */
export type Since = 'same' | 'changed' | 'removed' | 'added'

export interface Candidate {
  readonly observer: string
  readonly rule: Rule
  readonly version: number | null
  readonly since: Since
  /** Where the version in force now begins; null when none is. */
  readonly from: bigint | null
  readonly config: ObserverConfig | undefined
}

/** What was in force, then what is in force only now, then what this process has and nobody has started. */
export function toCandidates(
  then: readonly ObserverVersion[],
  now: readonly ObserverVersion[],
  configs: readonly ObserverConfig[],
): Candidate[] {
  const configOf = new Map(configs.map((config) => [config.name, config]))
  const latest = new Map(now.map((version) => [version.observer, version]))
  const known = new Set([...then, ...now].map(({ observer }) => observer))
  const before = then.map((was): Candidate => {
    const is = latest.get(was.observer)
    const since = is === undefined ? 'removed' : is.version === was.version ? 'same' : 'changed'
    return { ...toCandidate(was), since, config: configOf.get(was.observer) }
  })
  const asked = new Set(before.map(({ observer }) => observer))
  const later = now
    .filter(({ observer }) => !asked.has(observer))
    .map((is): Candidate => {
      return { ...toCandidate(is), version: null, since: 'added', config: configOf.get(is.observer) }
    })
  const only = configs
    .filter(({ name, enabled }) => enabled && !known.has(name))
    .map((config): Candidate => {
      return { observer: config.name, rule: config, version: null, since: 'added', from: null, config }
    })
  return [...before, ...later, ...only]
}

function toCandidate({ observer, version, fromPosition, definition }: ObserverVersion) {
  return { observer, version, from: fromPosition, rule: definition as Rule }
}
