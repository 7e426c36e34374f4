/** Pieces become a tree: text, holes, `if` and `for`. Nothing is evaluated and no expression is understood yet. */
import { closest } from '../../events/index.ts'
import { RESERVED_NAMES } from './names.ts'
import { type Code, type Fail, type Piece, trimmed } from './scan.ts'
import { Refusal } from './template-error.ts'

export type Node =
  | { readonly kind: 'text'; readonly text: string; readonly offset: number }
  | { readonly kind: 'hole'; readonly code: Code }
  | { readonly kind: 'if'; readonly branches: readonly Branch[]; readonly otherwise: readonly Node[] }
  | {
      readonly kind: 'for'
      readonly variable: string
      readonly list: Code
      readonly body: readonly Node[]
      readonly otherwise: readonly Node[]
    }

export interface Branch {
  readonly test: Code
  readonly body: readonly Node[]
}

export function parse(pieces: readonly Piece[], fail: Fail): Node[] {
  let next = 0
  const nodes = parseUntil([], 0).nodes
  return nodes

  /** Reads up to one of the given tags, or to the end of the template when there are none. */
  function parseUntil(ends: readonly string[], depth: number, opener?: Tag): { nodes: Node[]; end: Tag | undefined } {
    const found: Node[] = []
    while (next < pieces.length) {
      const piece = pieces[next++]!
      if (piece.kind === 'text') found.push({ kind: 'text', text: piece.text, offset: piece.offset })
      else if (piece.kind === 'hole') found.push({ kind: 'hole', code: piece.code })
      else {
        const tag = readTag(piece.code, piece.offset)
        if (ends.includes(tag.word)) return { nodes: found, end: tag }
        found.push(parseBlock(tag, depth + 1))
      }
    }
    if (opener === undefined) return { nodes: found, end: undefined }
    throw fail(opener.offset, new Refusal(`{% ${opener.word} %} is never closed`, `Add {% end${opener.word} %}.`))
  }

  function parseBlock(tag: Tag, depth: number): Node {
    if (depth > MAX_DEPTH) {
      throw fail(tag.offset, new Refusal(`blocks nest deeper than ${MAX_DEPTH} levels`, 'Flatten the template.'))
    }
    if (tag.word === 'if') return parseIf(tag, depth)
    if (tag.word === 'for') return parseFor(tag, depth)
    if (TAGS.includes(tag.word)) {
      throw fail(
        tag.offset,
        new Refusal(`{% ${tag.word} %} stands alone`, `It belongs to an {% if %} or {% for %} that is open.`),
      )
    }
    throw fail(
      tag.offset,
      new Refusal(
        `there is no tag ${JSON.stringify(tag.word)}`,
        `There are ${TAGS.join(', ')}.`,
        closest(tag.word, TAGS),
      ),
    )
  }

  function parseIf(tag: Tag, depth: number): Node {
    const branches: Branch[] = []
    let branch: Tag | undefined = tag
    while (branch !== undefined && branch.word !== 'else' && branch.word !== 'endif') {
      const test = needCode(branch, 'a condition, such as {% if total > 100 %}')
      const { nodes: body, end } = parseUntil(['elif', 'else', 'endif'], depth, tag)
      branches.push({ test, body })
      branch = end
    }
    return { kind: 'if', branches, otherwise: parseElse(branch, 'endif', tag, depth) }
  }

  function parseFor(tag: Tag, depth: number): Node {
    const [, variable = '', space = ''] = /^(\w+)(\s+in\s+)/.exec(tag.rest.source) ?? []
    if (space === '' || !/^[A-Za-z_]/.test(variable)) {
      throw fail(tag.offset, new Refusal('{% for %} cannot be read', 'Write {% for item in items %}.'))
    }
    if (RESERVED_NAMES.has(variable)) {
      throw fail(
        tag.rest.offset,
        new Refusal(`"${variable}" has a meaning of its own`, 'Give the variable of the loop another name.'),
      )
    }
    const skip = variable.length + space.length
    const list = { source: tag.rest.source.slice(skip), offset: tag.rest.offset + skip }
    const { nodes: body, end } = parseUntil(['else', 'endfor'], depth, tag)
    return { kind: 'for', variable, list, body, otherwise: parseElse(end, 'endfor', tag, depth) }
  }

  function parseElse(tag: Tag | undefined, end: string, opener: Tag, depth: number): Node[] {
    if (tag?.word !== 'else') return []
    return parseUntil([end], depth, opener).nodes
  }

  function needCode({ rest, offset, word }: Tag, what: string): Code {
    if (rest.source !== '') return rest
    throw fail(offset, new Refusal(`{% ${word} %} has no condition`, `Give it ${what}.`))
  }
}

interface Tag {
  readonly word: string
  readonly rest: Code
  readonly offset: number
}

function readTag(code: Code, offset: number): Tag {
  const word = /^\S*/.exec(code.source)?.[0] ?? ''
  const rest = trimmed(code.source, word.length, code.source.length)
  return { word, rest: { source: rest.source, offset: code.offset + rest.offset }, offset }
}

const TAGS = ['if', 'elif', 'else', 'endif', 'for', 'endfor']
/** Rendering calls itself once per level. */
const MAX_DEPTH = 32
