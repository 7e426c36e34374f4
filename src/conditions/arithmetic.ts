import type { ASTNode } from '@marcbachmann/cel-js'
import { build } from './budget.ts'
import { LONGEST_LIST, LONGEST_TEXT } from './limits.ts'
import { describeValue } from './names.ts'
import { add, divide, isNumeric, isZero, multiply, type Numeric, negate, remainder, subtract } from './numbers.ts'
import { absence, type Part, type Run, refuse, type Site, textOf } from './part.ts'
import { canBe, describeShape, type Kind, type Shape } from './shape.ts'
import { clampTime, Span } from './timestamps.ts'
import { Unresolved } from './unresolved.ts'
import { kindOfValue } from './values.ts'

type Operator = '+' | '-' | '*' | '/' | '%'

export function compileArithmetic(node: Extract<ASTNode, { op: Operator }>, site: Site): Part {
  const [left, right] = [site.compile(node.args[0]), site.compile(node.args[1])]
  const [leftAbsent, rightAbsent] = [absence(site, left), absence(site, right)]
  const rules = RULES[node.op]
  const run: Run = (scope, locals, item) => {
    const one = left.run(scope, locals, item)
    const other = right.run(scope, locals, item)
    if (one instanceof Unresolved) return one
    if (other instanceof Unresolved) return other
    if (one === undefined || one === null) return leftAbsent
    if (other === undefined || other === null) return rightAbsent
    const [leftKind, rightKind] = [kindOfValue(one), kindOfValue(other)]
    const rule = rules.find((each) => each.left === leftKind && each.right === rightKind)
    if (rule === undefined) return new Unresolved(node, cannot(node.op, describeValue(one), describeValue(other)))
    const result = rule.calculate(one as never, other as never)
    return typeof result === 'object' && result instanceof Problem ? new Unresolved(node, result.message) : result
  }
  return { run, shape: resultShape(node, left, right, site), start: node.start, end: node.end }
}

/** A minus before a literal is part of it. */
export function compileMinus(node: Extract<ASTNode, { op: '-_' }>, site: Site): Part {
  const operand = site.compile(node.args)
  const place = { start: node.start, end: node.end }
  if (operand.constant !== undefined && isNumeric(operand.constant.value)) {
    const value = negate(operand.constant.value)
    return { run: () => value, shape: operand.shape, constant: { value }, ...place }
  }
  if (!canBe(operand.shape, 'number') && !canBe(operand.shape, 'duration')) {
    refuse(site, node, `${textOf(site, operand)} is ${describeShape(operand.shape)}, which has no negative`)
  }
  const absent = absence(site, operand)
  const run: Run = (scope, locals, item) => {
    const value = operand.run(scope, locals, item)
    if (value instanceof Unresolved) return value
    if (value === undefined || value === null) return absent
    if (isNumeric(value)) return negate(value)
    return value instanceof Span ? new Span(-value.ms) : new Unresolved(node, `${describeValue(value)} has no negative`)
  }
  return { run, shape: operand.shape, ...place }
}

interface Rule {
  readonly left: Kind
  readonly right: Kind
  readonly gives: Kind
  calculate(one: never, other: never): unknown
}

/** What a rule gives when it has no result. */
class Problem {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

const TOO_LARGE = new Problem('the result has too many digits')
const BY_ZERO = new Problem('division by zero')

const RULES: Readonly<Record<Operator, readonly Rule[]>> = {
  '+': [
    rule('number', 'number', 'number', (one: Numeric, other: Numeric) => add(one, other) ?? TOO_LARGE),
    rule('text', 'text', 'text', joinText),
    rule('list', 'list', 'list', joinLists),
    rule('timestamp', 'duration', 'timestamp', (time: Date, span: Span) => clampTime(time.getTime() + span.ms)),
    rule('duration', 'timestamp', 'timestamp', (span: Span, time: Date) => clampTime(time.getTime() + span.ms)),
    rule('duration', 'duration', 'duration', (one: Span, other: Span) => new Span(one.ms + other.ms)),
  ],
  '-': [
    rule('number', 'number', 'number', (one: Numeric, other: Numeric) => subtract(one, other) ?? TOO_LARGE),
    rule('timestamp', 'timestamp', 'duration', (one: Date, other: Date) => new Span(one.getTime() - other.getTime())),
    rule('timestamp', 'duration', 'timestamp', (time: Date, span: Span) => clampTime(time.getTime() - span.ms)),
    rule('duration', 'duration', 'duration', (one: Span, other: Span) => new Span(one.ms - other.ms)),
  ],
  '*': [rule('number', 'number', 'number', (one: Numeric, other: Numeric) => multiply(one, other) ?? TOO_LARGE)],
  '/': [rule('number', 'number', 'number', byNonZero(divide))],
  '%': [rule('number', 'number', 'number', byNonZero(remainder))],
}

function rule<One, Other>(left: Kind, right: Kind, gives: Kind, calculate: (one: One, other: Other) => unknown): Rule {
  return { left, right, gives, calculate }
}

function byNonZero(calculate: (one: Numeric, other: Numeric) => Numeric | undefined) {
  return (one: Numeric, other: Numeric) => (isZero(other) ? BY_ZERO : (calculate(one, other) ?? TOO_LARGE))
}

function joinText(one: string, other: string): unknown {
  if (one.length + other.length > LONGEST_TEXT) return new Problem(`text of more than ${LONGEST_TEXT} characters`)
  build(one.length + other.length)
  return one + other
}

function joinLists(one: readonly unknown[], other: readonly unknown[]): unknown {
  if (one.length + other.length > LONGEST_LIST) return new Problem(`a list of more than ${LONGEST_LIST} items`)
  build(one.length + other.length)
  return [...one, ...other]
}

function resultShape(node: Extract<ASTNode, { op: Operator }>, left: Part, right: Part, site: Site): Shape {
  const possible = RULES[node.op].filter((each) => canBe(left.shape, each.left) && canBe(right.shape, each.right))
  if (possible.length === 0) {
    refuse(site, node, cannot(node.op, describeShape(left.shape), describeShape(right.shape)))
  }
  return { kinds: [...new Set(possible.map(({ gives }) => gives))] }
}

function cannot(operator: Operator, left: string, right: string): string {
  const hint = operator === '+' && [left, right].includes('text') ? '; write string(…) around what is not text' : ''
  return `${operator} does not work on ${left} and ${right}${hint}`
}
