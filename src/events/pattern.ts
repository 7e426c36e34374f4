import { AftercommitError } from '../errors.ts'
import { baseName } from './event-name.ts'
import { quoted } from './quoted.ts'

/**
 * Patterns choose events by name: `*` stands for anything within one segment (`order.*`, `order_*`), `**` for any
 * number of segments including none, and a lone `*` for everything. The `.vN` of a name or a pattern is no part of it.
 *
 * Matching never backtracks over characters already settled, so no pattern can make a reader slow.
 */
export function compilePatterns(patterns: readonly string[]): (type: string) => boolean {
  const parsed = parsePatterns(patterns)
  if (parsed.some(matchesEverything)) return () => true
  const names = new Set(parsed.filter(isLiteral).map((segments) => segments.join('.')))
  const globs = parsed.filter((segments) => !isLiteral(segments))
  if (globs.length === 0) return (type) => names.has(baseName(type))
  return (type) => {
    const base = baseName(type)
    if (names.has(base)) return true
    const segments = base.split('.')
    return globs.some((glob) => matchGlob(glob, segments, ANY_SEGMENTS, matchSegment))
  }
}

/**
 * An anchored POSIX regular expression that chooses the same events in Postgres: `where type ~ $1`. The look-behind
 * keeps a trailing wildcard from taking the `.vN` for a segment of its own.
 */
export function patternsToSql(patterns: readonly string[]): string {
  const parsed = parsePatterns(patterns)
  if (parsed.some(matchesEverything)) return '^'
  const alternatives = parsed.map(segmentsToRegex).join('|')
  return `^(?:${alternatives})(?:${VERSION}$|(?<!${VERSION})$)`
}

/** Names, and beginnings of names, that no event lacks which the patterns choose. */
export interface TypeBounds {
  readonly names: readonly string[]
  readonly prefixes: readonly string[]
}

/**
 * For patterns of strangers: what an index or a plain comparison can leave out, without a regular expression in the
 * database. Events that pass still have to be matched. Undefined where every event may match.
 */
export function boundsOf(patterns: readonly string[]): TypeBounds | undefined {
  const parsed = parsePatterns(patterns)
  const names = parsed.filter(isLiteral).map((segments) => segments.join('.'))
  const starts = parsed.filter((segments) => !isLiteral(segments)).map((segments) => startOf(segments.join('.')))
  if (starts.includes('')) return undefined
  return { names: unique(names), prefixes: unique([...names.map((name) => `${name}.v`), ...starts]) }
}

/** Before the first wildcard, and before the dot of a `.**`, which may stand for nothing. */
function startOf(pattern: string): string {
  const wildcard = pattern.indexOf('*')
  const start = pattern.slice(0, wildcard)
  return pattern.startsWith('.**', wildcard - 1) ? start.slice(0, -1) : start
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}

type Segments = readonly string[]

const ANY_SEGMENTS = '**'
const VERSION = String.raw`\.v[1-9][0-9]*`
const MAX_PATTERN_LENGTH = 200

function parsePatterns(patterns: readonly string[]): Segments[] {
  if (!Array.isArray(patterns)) {
    const hint = typeof patterns === 'string' ? ` Write [${quoted(patterns)}].` : ''
    throw new AftercommitError('BAD_PATTERN', `Patterns are given as a list, like ["order.*"].${hint}`)
  }
  const problems = patterns.map(patternProblem).filter((problem) => problem !== undefined)
  if (patterns.length === 0) problems.push('The list of patterns is empty, so it would never match. Name at least one.')
  if (problems.length > 0) throw new AftercommitError('BAD_PATTERN', problems.join('\n'))
  return patterns.map(parsePattern)
}

function parsePattern(pattern: string): Segments {
  if (pattern === '*') return [ANY_SEGMENTS]
  const segments = baseName(pattern).split('.')
  return segments.filter((segment, at) => segment !== ANY_SEGMENTS || segments[at - 1] !== ANY_SEGMENTS)
}

function patternProblem(pattern: unknown): string | undefined {
  if (typeof pattern !== 'string') return `A pattern must be text, not ${quoted(pattern)}.`
  if (pattern === '') return 'A pattern is empty. Use "*" for every event.'
  if (pattern.length > MAX_PATTERN_LENGTH) return `${quoted(pattern)} is longer than ${MAX_PATTERN_LENGTH} characters.`
  const bad = pattern.split('.').find((segment) => segment !== ANY_SEGMENTS && !SEGMENT.test(segment))
  if (bad === undefined) return undefined
  if (bad.includes(ANY_SEGMENTS))
    return `${quoted(pattern)} is not a pattern: ** must be a whole segment, as in "order.**".`
  const lower = pattern.toLowerCase()
  const suggestion = lower !== pattern && patternProblem(lower) === undefined ? ` Did you mean "${lower}"?` : ''
  return `${quoted(pattern)} is not a pattern: use lower-case segments joined by dots, with * or **.${suggestion}`
}

/** Letters, digits and _, with single wildcards anywhere between them. */
const SEGMENT = /^(?:[a-z0-9_]|\*(?!\*))+$/

function matchesEverything(segments: Segments): boolean {
  return segments.length === 1 && segments[0] === ANY_SEGMENTS
}

function isLiteral(segments: Segments): boolean {
  return segments.every((segment) => !segment.includes('*'))
}

function matchSegment(pattern: string, segment: string): boolean {
  if (pattern === '*') return true
  if (!pattern.includes('*')) return pattern === segment
  return matchGlob(pattern, segment, '*', (one, other) => one === other)
}

/**
 * The one algorithm for both levels: segments with `**`, and the characters of a segment with `*`. Only the latest
 * wildcard is ever widened, since an earlier one could not do better; that bounds the work by the product of lengths.
 */
function matchGlob(
  pattern: ArrayLike<string>,
  text: ArrayLike<string>,
  wildcard: string,
  same: (pattern: string, text: string) => boolean,
): boolean {
  let at = 0
  let inPattern = 0
  let afterWildcard = -1
  let resumeAt = 0
  while (at < text.length) {
    if (inPattern < pattern.length && pattern[inPattern] === wildcard) {
      afterWildcard = ++inPattern
      resumeAt = at
    } else if (inPattern < pattern.length && same(pattern[inPattern]!, text[at]!)) {
      inPattern++
      at++
    } else if (afterWildcard >= 0) {
      inPattern = afterWildcard
      at = ++resumeAt
    } else {
      return false
    }
  }
  while (inPattern < pattern.length && pattern[inPattern] === wildcard) inPattern++
  return inPattern === pattern.length
}

function segmentsToRegex(segments: Segments): string {
  let regex = ''
  segments.forEach((segment, at) => {
    const first = at === 0
    if (segment === ANY_SEGMENTS) regex += first ? String.raw`(?:[^.]*\.)*` : String.raw`(?:\.[^.]*)*`
    // A leading ** already ends in its dot.
    else
      regex +=
        (first || (at === 1 && segments[0] === ANY_SEGMENTS) ? '' : String.raw`\.`) + segment.replaceAll('*', '[^.]*')
  })
  return regex
}
