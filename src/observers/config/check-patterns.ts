/** Whether the patterns of an observer can match anything: one that cannot is a typing mistake that nobody would notice. */
import type { Found, Path } from '../../configuration/index.ts'
import { AftercommitError } from '../../errors.ts'
import { baseName, closest, compilePatterns, type EventDefinition, type EventDefinitions } from '../../events/index.ts'

export interface CheckedPatterns {
  readonly found: readonly Found[]
  /** What the patterns choose; undefined when the events are not known. */
  readonly events: readonly EventDefinition[] | undefined
}

/** Without `on` the name of the observer is the event type, so it is what the mistake is about. */
export function checkPatterns(
  name: string,
  on: string | readonly string[] | undefined,
  events: EventDefinitions | undefined,
  above: Path,
): CheckedPatterns {
  const patterns = typeof on === 'object' ? on : [on ?? name]
  const chosen = new Set<string>()
  const found = patterns.flatMap((pattern, at): Found[] => {
    const message = problemOf(pattern, events, chosen)
    if (message === undefined) return []
    if (on === undefined)
      return [{ path: above, at: 'key', message: `has no \`on\`, so its name is the event type: ${message}` }]
    return [{ path: [...above, 'on', ...(typeof on === 'string' ? [] : [at])], at: 'value', message }]
  })
  return { found, events: events && [...chosen].map((type) => events.get(type)!) }
}

function problemOf(pattern: string, events: EventDefinitions | undefined, chosen: Set<string>): string | undefined {
  try {
    const matches = compilePatterns([pattern])
    if (events === undefined) return undefined
    const matching = events.names.filter(matches)
    for (const type of matching) chosen.add(type)
    return matching.length > 0 ? undefined : unmatched(pattern, events.names)
  } catch (error) {
    if (!(error instanceof AftercommitError)) throw error
    return error.message
  }
}

function unmatched(pattern: string, names: readonly string[]): string {
  const isName = !pattern.includes('*')
  const near = closest(pattern, isName ? names : names.flatMap((name) => likePattern(pattern, name)))
  const what = isName ? `no event named "${pattern}" is defined.` : `"${pattern}" matches none of the defined events.`
  return `${what}${near === undefined ? ' Add it to defineEvents, or correct it.' : ` Did you mean "${near}"?`}`
}

/** The name with the wildcards of the pattern: `order.placed` like `ordr.*` is `order.*`. */
function likePattern(pattern: string, name: string): string[] {
  const wanted = pattern.split('.')
  const segments = baseName(name).split('.')
  if (segments.length < wanted.length) return []
  return [wanted.map((part, at) => (part.includes('*') ? part : segments[at])).join('.')]
}
