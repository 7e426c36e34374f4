import type { ASTNode } from '@marcbachmann/cel-js'
import { closest } from '../events/index.ts'
import { COMPREHENSIONS, compileComprehension, isComprehension } from './comprehensions.ts'
import { CHANGE_FUNCTIONS, compileEventQuestion, isEventQuestion } from './event-questions.ts'
import { FUNCTIONS, type FunctionRule } from './functions.ts'
import { compileMatches } from './matches.ts'
import { compileHas, describeValue } from './names.ts'
import { absence, type Part, type Run, refuse, type Site } from './part.ts'
import { BOOL, canBe, describeKind, describeShape, type Shape } from './shape.ts'
import { Unresolved } from './unresolved.ts'
import { kindOfValue } from './values.ts'

/** A call, seen alike whether it is written `size(items)` or `items.size()`. */
export interface Call {
  readonly name: string
  /** Undefined when it is not called on anything. */
  readonly receiver: ASTNode | undefined
  readonly args: readonly ASTNode[]
  readonly node: ASTNode
}

export function compileCall(node: Extract<ASTNode, { op: 'call' | 'rcall' }>, site: Site): Part {
  const call = toCall(node)
  const place = { start: node.start, end: node.end }
  if (call.receiver === undefined) {
    if (call.name === 'has') return { run: compileHas(node, onlyArgument(call, site), site), shape: BOOL, ...place }
    if (isEventQuestion(call)) return { run: compileEventQuestion(call, site), shape: BOOL, ...place }
  } else {
    if (call.name === 'matches') return { run: compileMatches(call, call.receiver, site), shape: BOOL, ...place }
    if (isComprehension(call)) return { ...compileComprehension(call, call.receiver, site), ...place }
  }
  return { ...compileFunction(call, site), ...place }
}

function toCall(node: Extract<ASTNode, { op: 'call' | 'rcall' }>): Call {
  if (node.op === 'call') return { name: node.args[0], receiver: undefined, args: node.args[1], node }
  return { name: node.args[0], receiver: node.args[1], args: node.args[2], node }
}

function onlyArgument({ args, node }: Call, site: Site): ASTNode | undefined {
  return args.length === 1 ? args[0] : refuse(site, node, 'has() takes one field, such as has(customer.tier)')
}

/** Picks the rules that can apply from what is known now, and the one that does from the values later. */
function compileFunction(call: Call, site: Site): { run: Run; shape: Shape } {
  const rules = findRules(call, site)
  const nodes = call.receiver === undefined ? call.args : [call.receiver, ...call.args]
  const operands = nodes.map((node) => {
    const part = site.compile(node)
    return { part, absent: absence(site, part) }
  })
  const possible = rules.filter(({ takes }) => takes.every((kind, at) => canBe(operands[at]!.part.shape, kind)))
  if (possible.length === 0) {
    const given = operands.map(({ part }) => describeShape(part.shape)).join(', ')
    refuse(site, call.node, `${call.name}() does not work on ${given}; it takes ${describeRules(rules)}`)
  }
  const run: Run = (scope, locals, item) => {
    const values: unknown[] = []
    for (const { part, absent } of operands) {
      const value = part.run(scope, locals, item)
      if (value instanceof Unresolved) return value
      if (value === undefined || value === null) return absent
      values.push(value)
    }
    const rule = possible.find(({ takes }) => takes.every((kind, at) => kind === kindOfValue(values[at])))
    if (rule === undefined) {
      return new Unresolved(call.node, `${call.name}() does not work on ${values.map(describeValue).join(', ')}`)
    }
    const result = rule.call(...(values as never[]))
    return result ?? new Unresolved(call.node, rule.problem ?? `${call.name}() has no result for this`)
  }
  return { run, shape: { kinds: [...new Set(possible.map(({ gives }) => gives))] } }
}

function findRules(call: Call, site: Site): readonly FunctionRule[] {
  const isMethod = call.receiver !== undefined
  const count = call.args.length + (isMethod ? 1 : 0)
  const named = FUNCTIONS.filter((rule) => rule.name === call.name)
  const rules = named.filter((rule) => rule.takes.length === count && rule.style !== (isMethod ? 'function' : 'method'))
  if (rules.length > 0) return rules
  if (named.length > 0) {
    return refuse(site, call.node, `${call.name}() is not called like this; it takes ${describeRules(named)}`)
  }
  const names = [...FUNCTIONS.map(({ name }) => name), ...CHANGE_FUNCTIONS, ...COMPREHENSIONS, 'matches', 'has']
  return refuse(site, call.node, `there is no function ${call.name}()`, closest(call.name, names))
}

/** `text.substring(a number, a number)`, for messages. */
function describeRules(rules: readonly FunctionRule[]): string {
  const forms = rules.map(({ name, takes, style }) => {
    const kinds = takes.map(describeKind)
    return style === 'method' ? `(${kinds[0]}).${name}(${kinds.slice(1).join(', ')})` : `${name}(${kinds.join(', ')})`
  })
  return forms.slice(0, 6).join(' or ')
}
