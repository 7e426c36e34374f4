import type { ASTNode } from '@marcbachmann/cel-js'
import { compileArithmetic, compileMinus } from './arithmetic.ts'
import { compileCall } from './calls.ts'
import { compileComparison, compileEquality, compileMembership } from './comparisons.ts'
import { compileChain, compileChoice, compileNot } from './logic.ts'
import { compileField, compileIndex, compileName } from './names.ts'
import { parseNumber } from './numbers.ts'
import { MAX_DEPTH, parse, TOO_DEEP } from './parse.ts'
import { absence, type Part, refuse, type Site } from './part.ts'
import { ANYTHING, eitherShape, type KnownFields, type Shape } from './shape.ts'
import { Unresolved } from './unresolved.ts'
import { kindOfValue } from './values.ts'

/**
 * Syntax tree to functions. The library's own evaluator is not used: it reads `constructor` from payloads, rounds large
 * numbers, runs backtracking patterns and knows no absent fields. What is built here needs none of that and is faster.
 */
export interface CompileOptions {
  /** The fields of the payload, where the schema of the event tells; see `knownFieldsOf`. */
  readonly fields?: KnownFields | undefined
  /** The environment variables that may be read. Naming another is then a mistake. */
  readonly env?: readonly string[] | undefined
  readonly locals?: readonly string[] | undefined
}

export interface Compiled {
  readonly whole: Part
  /** Every part that has a value of its own to show, in the order of the source, outer before inner. */
  readonly parts: readonly Part[]
}

export function compileSource(source: string, { fields, env, locals = [] }: CompileOptions): Compiled {
  const parts: Part[] = []
  const around = { source, fields, env, locals, item: undefined, seen: (part: Part) => parts.push(part) }
  const whole = compileNode(parse(source), new NodeSite(around, 0))
  parts.sort((one, other) => one.start - other.start || other.end - one.end)
  return { whole, parts }
}

interface Surroundings extends Omit<Site, 'compile' | 'compileBody'> {
  readonly seen: (part: Part) => void
}

function compileNode(node: ASTNode, site: NodeSite): Part {
  if (site.depth > MAX_DEPTH) refuse(site, node, TOO_DEEP)
  const part = dispatch(node, site)
  site.seen(part)
  return part
}

/** There is one for every node of every expression of a configuration: a class, because it is made so often. */
class NodeSite implements Site {
  readonly source: string
  readonly fields: KnownFields | undefined
  readonly env: readonly string[] | undefined
  readonly locals: readonly string[]
  readonly item: Site['item']
  readonly seen: (part: Part) => void
  readonly depth: number

  constructor({ source, fields, env, locals, item, seen }: Surroundings, depth: number) {
    this.source = source
    this.fields = fields
    this.env = env
    this.locals = locals
    this.item = item
    this.seen = seen
    this.depth = depth
  }

  compile(node: ASTNode): Part {
    return compileNode(node, new NodeSite(this, this.depth + 1))
  }

  compileBody(node: ASTNode, item: Site['item']): { part: Part; size: number } {
    let size = 0
    const { source, fields, env, locals } = this
    const inside = { source, fields, env, locals, item, seen: () => size++ }
    const part = compileNode(node, new NodeSite(inside, this.depth + 1))
    return { part, size }
  }
}

function dispatch(node: ASTNode, site: Site): Part {
  switch (node.op) {
    case 'value':
      return compileLiteral(node, site)
    case 'id':
      return compileName(node, site)
    case '.':
      return compileField(node, site)
    case '[]':
      return compileIndex(node, site)
    case 'call':
    case 'rcall':
      return compileCall(node, site)
    case '&&':
    case '||':
      return compileChain(node, site)
    case '!_':
      return compileNot(node, site)
    case '?:':
      return compileChoice(node, site)
    case '==':
    case '!=':
      return compileEquality(node, site)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return compileComparison(node, site)
    case 'in':
      return compileMembership(node, site)
    case '-_':
      return compileMinus(node, site)
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
      return compileArithmetic(node, site)
    case 'list':
      return compileList(node, site)
    case 'map':
      return compileMap(node, site)
    default:
      return refuse(site, node, `${node.op} is not supported`)
  }
}

type NodeOf<Op extends ASTNode['op']> = Extract<ASTNode, { op: Op }>

/** Numbers are read from the source: the tree holds doubles, which have already lost digits. */
function compileLiteral(node: NodeOf<'value'>, site: Site): Part {
  const value = literalOf(node, site)
  const kind = kindOfValue(value)
  return { run: () => value, shape: { kinds: kind === undefined ? [] : [kind] }, constant: { value }, ...placeOf(node) }
}

function literalOf(node: NodeOf<'value'>, site: Site): unknown {
  const { args: value } = node
  if (value instanceof Uint8Array) return refuse(site, node, 'bytes are not supported; an event has none')
  if (typeof value === 'bigint') return parseNumber(String(value))
  if (typeof value === 'number') return parseNumber(site.source.slice(node.start, node.end))
  return typeof value === 'object' && value !== null ? parseNumber(String(value)) : value
}

function compileList(node: NodeOf<'list'>, site: Site): Part {
  const items = node.args.map((item) => site.compile(item))
  const shapes = items.map(({ shape }) => shape)
  return {
    run: (scope, locals, item) => {
      const values: unknown[] = []
      for (const part of items) {
        const value = part.run(scope, locals, item)
        if (value instanceof Unresolved) return value
        values.push(value ?? null)
      }
      return values
    },
    shape: { kinds: ['list'], items: shapes.length === 0 ? ANYTHING : shapes.reduce(eitherShape) },
    ...placeOf(node),
  }
}

function compileMap(node: NodeOf<'map'>, site: Site): Part {
  const entries = node.args.map(([key, value]) => {
    const name = site.compile(key)
    return { name, nameAbsent: absence(site, name), value: site.compile(value) }
  })
  return {
    run: (scope, locals, item) => {
      const map: Record<string, unknown> = Object.create(null)
      for (const entry of entries) {
        const name = entry.name.run(scope, locals, item)
        const value = entry.value.run(scope, locals, item)
        if (name instanceof Unresolved) return name
        if (value instanceof Unresolved) return value
        if (name === undefined || name === null) return entry.nameAbsent
        if (typeof name !== 'string') return new Unresolved(entry.name, 'the keys of an object are text')
        map[name] = value ?? null
      }
      return map
    },
    shape: MAP,
    ...placeOf(node),
  }
}

function placeOf({ start, end }: ASTNode): { start: number; end: number } {
  return { start, end }
}

const MAP: Shape = { kinds: ['map'] }
