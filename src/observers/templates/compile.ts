/** The tree of a template becomes plain functions, once. Rendering calls them; no code is ever generated. */
import { type Context, compileValue, placeOf, type Run, type Value } from './compile-value.ts'
import { checkLiteral, escapeFor, type Target } from './escape.ts'
import { LOOP } from './expressions.ts'
import type { Branch, Node } from './parse.ts'
import { at, Refusal } from './template-error.ts'
import { kindOfValue, toText } from './text.ts'
import { isTrue } from './truth.ts'

export interface NodeContext extends Context {
  readonly target: Target
  /** An absent value is an error rather than empty text. */
  readonly required: boolean
}

export type Write = (run: Run) => void

export function compileNodes(nodes: readonly Node[], locals: readonly string[], context: NodeContext): Write {
  const writers = nodes.map((node) => compileNode(node, locals, context))
  const [only] = writers
  if (only !== undefined && writers.length === 1) return only
  return (run) => {
    for (const write of writers) write(run)
  }
}

function compileNode(node: Node, locals: readonly string[], context: NodeContext): Write {
  switch (node.kind) {
    case 'text':
      return compileText(node.text, node.offset, context)
    case 'hole':
      return compileHole(node, locals, context)
    case 'if':
      return compileIf(node.branches, compileNodes(node.otherwise, locals, context), locals, context)
    case 'for':
      return compileFor(node, locals, context)
  }
}

function compileText(text: string, offset: number, context: NodeContext): Write {
  const place = placeOf({ source: '', offset }, context)
  at(place, 'load', () => checkLiteral(context.target, text))
  return ({ meter }) => at(place, 'render', () => meter.add(text))
}

function compileHole({ code }: Node & { kind: 'hole' }, locals: readonly string[], context: NodeContext): Write {
  const { target, required } = context
  const { read, lastFilter } = compileValue(code, locals, context)
  const place = placeOf(code, context)
  // Who writes urlencode in an address means it once.
  const isEncoded = target === 'url' && lastFilter === 'urlencode'
  return (run) => {
    const value = read(run)
    at(place, 'render', () => {
      if (required) checkPresent(value)
      const text = toText(value, run.meter.budget.bytes)
      run.meter.checkLength(text)
      run.meter.add(isEncoded ? text : escapeFor(target, text))
    })
  }
}

/** A template that is one hole and nothing else, as a value rather than as text. */
export function compileWhole({ code }: Node & { kind: 'hole' }, context: NodeContext): Value {
  const { read } = compileValue(code, [], context)
  const place = placeOf(code, context)
  return (run) => {
    const value = read(run)
    if (context.required) at(place, 'render', () => checkPresent(value))
    return value
  }
}

function checkPresent(value: unknown): void {
  if (value === null || value === undefined) {
    throw new Refusal('the value is absent or null, and this field needs one', 'Give another with | default(…).')
  }
}

function compileIf(
  branches: readonly Branch[],
  otherwise: Write,
  locals: readonly string[],
  context: NodeContext,
): Write {
  const compiled = branches.map(({ test, body }) => ({
    test: compileValue(test, locals, context).read,
    write: compileNodes(body, locals, context),
  }))
  return (run) => {
    const branch = compiled.find(({ test }) => isTrue(test(run)))
    const write = branch?.write ?? otherwise
    write(run)
  }
}

function compileFor(node: Node & { kind: 'for' }, locals: readonly string[], context: NodeContext): Write {
  const { read } = compileValue(node.list, locals, context)
  const inner = [...new Set([...locals, node.variable, LOOP])]
  const writeItem = compileNodes(node.body, inner, context)
  const writeNone = compileNodes(node.otherwise, locals, context)
  const place = placeOf(node.list, context)
  return (run) => {
    const list = read(run)
    const items = at(place, 'render', () => itemsOf(list, run))
    if (items.length === 0) return writeNone(run)
    const outer = run.locals
    const last = items.length - 1
    for (const [index, item] of items.entries()) {
      at(place, 'render', () => run.meter.spend(1))
      const loop = { index: index + 1, first: index === 0, last: index === last }
      run.locals = { ...outer, [node.variable]: item, [LOOP]: loop }
      writeItem(run)
    }
    run.locals = outer
  }
}

/** The keys of an object, as in the macros of CEL; nothing of what is absent. */
function itemsOf(list: unknown, { meter }: Run): readonly unknown[] {
  if (list === null || list === undefined) return []
  const kind = kindOfValue(list)
  if (kind !== 'a list' && kind !== 'an object') {
    throw new Refusal(`{% for %} takes a list, and was given ${kind}`, 'Name a list, or the keys of an object.')
  }
  const items: readonly unknown[] = Array.isArray(list) ? list : Object.keys(list)
  meter.checkItems(items.length)
  return items
}
