import { type ASTNode, Environment, ParseError } from '@marcbachmann/cel-js'
import { CompileMistake } from './condition-error.ts'
import type { Place } from './part.ts'

/**
 * Text to syntax tree. The grammar is the library's; what the tree means is decided in compile.ts. The limits are
 * checked before anything recursive runs, so that no source can overflow the stack.
 */
export function parse(source: string): ASTNode {
  const whole = { source, start: 0, end: Math.min(source.length, 40) }
  if (source.trim() === '') throw new CompileMistake({ ...whole, problem: 'it is empty' })
  if (source.length > MAX_LENGTH) {
    const problem = `it has ${source.length} characters, and ${MAX_LENGTH} are the most`
    throw new CompileMistake({ ...whole, problem })
  }
  refuseLongRuns(source)
  try {
    return environment.parse(source).ast
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const { start = 0, end = start } = error.range ?? {}
    throw new CompileMistake({ source, start, end, problem: explain(error, source) })
  }
}

export const MAX_DEPTH = 64
const MAX_LENGTH = 10_000

// The library counts the whole expression as one level.
const environment = new Environment({ unlistedVariablesAreDyn: true, limits: { maxDepth: MAX_DEPTH + 1 } })

/** The one recursion that the library does not limit: `!!!!…` and `----…`. */
function refuseLongRuns(source: string): void {
  // Nearly every source is too short for it, or has too few of them: then nothing is taken apart.
  if (source.length <= MAX_DEPTH || source.split(/[!-]/, MAX_DEPTH + 2).length <= MAX_DEPTH + 1) return
  let run = 0
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    if (token === '!' || token === '-') run++
    else if (token.trim() !== '' && !token.startsWith('//')) run = 0
    if (run > MAX_DEPTH) throw new CompileMistake({ source, start: index, end: index + 1, problem: TOO_DEEP })
  }
}

export const TOO_DEEP = `it nests deeper than ${MAX_DEPTH} levels`

/** Text literals, comments, single characters. */
const TOKEN = /'''(?:[^\\]|\\.)*?'''|"""(?:[^\\]|\\.)*?"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\/\/[^\n]*|./gs

/** A node does not count the parentheses around its operands: `(a || b) && c` would end up as `a || b) && c`. */
export function withParentheses(source: string, { start, end }: Place): Place {
  let open = 0
  let unopened = 0
  const text = source.slice(start, end)
  if (!text.includes('(') && !text.includes(')')) return { start, end }
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '(') open++
    else if (token === ')' && open > 0) open--
    else if (token === ')') unopened++
  }
  let [from, to] = [start, end]
  while (unopened-- > 0) from = source.lastIndexOf('(', from - 1)
  while (open-- > 0) to = source.indexOf(')', to) + 1
  return { start: from, end: to }
}

function explain(error: ParseError, source: string): string {
  switch (error.code) {
    case 'limit_exceeded':
      return error.summary.includes('maxDepth') ? TOO_DEEP : lowerFirst(error.summary)
    case 'reserved_identifier': {
      const { start = 0, end = 0 } = error.range ?? {}
      const name = source.slice(start, end)
      return `${name} is a reserved word; a field of that name is payload[${JSON.stringify(name)}]`
    }
    case 'unexpected_character':
      return source[error.range?.start ?? 0] === '='
        ? 'a single = compares nothing; write =='
        : `${JSON.stringify(source[error.range?.start ?? 0] ?? '')} was not expected here`
    case 'unexpected_token':
    case 'expected_token':
      return lowerFirst(error.summary.replace(/\b[A-Z]{2,}\b/g, (name) => TOKENS.get(name) ?? name.toLowerCase()))
    default:
      return lowerFirst(error.summary)
  }
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

/** The library's names of tokens, as they are written. */
const TOKENS: ReadonlyMap<string, string> = new Map([
  ['EOF', 'the end'],
  ['LPAREN', '('],
  ['RPAREN', ')'],
  ['LBRACKET', '['],
  ['RBRACKET', ']'],
  ['LBRACE', '{'],
  ['RBRACE', '}'],
  ['DOT', '.'],
  ['COMMA', ','],
  ['COLON', ':'],
  ['QUESTION', '?'],
  ['IDENTIFIER', 'a name'],
  ['STRING', 'text'],
])
