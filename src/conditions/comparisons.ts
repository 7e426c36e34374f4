import type { ASTNode } from '@marcbachmann/cel-js'
import { spend } from './budget.ts'
import { describeValue } from './names.ts'
import { absence, type Part, type Run, refuse, type Site, textOf } from './part.ts'
import { ANYTHING, BOOL, canBe, describeShape, isOnlyNull, type Kind, type Shape } from './shape.ts'
import { Unresolved } from './unresolved.ts'
import { isEqual, isMap, orderOf } from './values.ts'

/** `==` and `!=`. Absent is null here, so that `note == null` and `status != 'paid'` say what they seem to. */
export function compileEquality(node: Extract<ASTNode, { op: '==' | '!=' }>, site: Site): Part {
  const [left, right] = [site.compile(node.args[0]), site.compile(node.args[1])]
  checkComparable(left, right, node.op, site)
  const wanted = node.op === '=='
  const run: Run = (scope, locals, item) => {
    const one = left.run(scope, locals, item)
    const other = right.run(scope, locals, item)
    if (one instanceof Unresolved) return one
    if (other instanceof Unresolved) return other
    return isEqual(one, other) === wanted
  }
  return { run, shape: BOOL, start: node.start, end: node.end }
}

type OrderOperator = '<' | '<=' | '>' | '>='

/** Both sides of one kind: numbers, text, times, durations. A side that is absent or null has no order. */
export function compileComparison(node: Extract<ASTNode, { op: OrderOperator }>, site: Site): Part {
  const [left, right] = [site.compile(node.args[0]), site.compile(node.args[1])]
  for (const side of [left, right]) checkOrdered(side, site)
  checkComparable(left, right, node.op, site)
  const [leftAbsent, rightAbsent] = [absence(site, left), absence(site, right)]
  const compare = COMPARE[node.op]
  const run: Run = (scope, locals, item) => {
    const one = left.run(scope, locals, item)
    const other = right.run(scope, locals, item)
    if (typeof one === 'number' && typeof other === 'number') return compare(one, other)
    if (one instanceof Unresolved) return one
    if (other instanceof Unresolved) return other
    if (one === undefined || one === null) return leftAbsent
    if (other === undefined || other === null) return rightAbsent
    const order = orderOf(one, other)
    if (order !== undefined) return compare(order, 0)
    return new Unresolved(node, `${describeValue(one)} and ${describeValue(other)} have no order`)
  }
  return { run, shape: BOOL, start: node.start, end: node.end }
}

const COMPARE: Readonly<Record<OrderOperator, (one: number, other: number) => boolean>> = {
  '<': (one, other) => one < other,
  '<=': (one, other) => one <= other,
  '>': (one, other) => one > other,
  '>=': (one, other) => one >= other,
}

/** `status in ['paid', 'shipped']`, `'express' in options`. An absent value is looked for as null. */
export function compileMembership(node: Extract<ASTNode, { op: 'in' }>, site: Site): Part {
  const [needle, container] = [site.compile(node.args[0]), site.compile(node.args[1])]
  if (!canBe(container.shape, 'list') && !canBe(container.shape, 'map')) {
    const hint = canBe(container.shape, 'text') ? '; to look within text, write text.contains(part)' : ''
    refuse(site, container, `in needs a list or an object, not ${describeShape(container.shape)}${hint}`)
  }
  if (!canBe(container.shape, 'map')) checkComparable(needle, { ...container, shape: itemsOf(container) }, 'in', site)
  const containerAbsent = absence(site, container)
  const run: Run = (scope, locals, item) => {
    const value = needle.run(scope, locals, item)
    const within = container.run(scope, locals, item)
    if (value instanceof Unresolved) return value
    if (within instanceof Unresolved) return within
    if (within === undefined || within === null) return containerAbsent
    if (Array.isArray(within)) return includes(within, value)
    if (isMap(within)) return typeof value === 'string' && Object.hasOwn(within, value)
    return new Unresolved(container, `in needs a list or an object, not ${describeValue(within)}`)
  }
  return { run, shape: BOOL, start: node.start, end: node.end }
}

function includes(list: readonly unknown[], value: unknown): boolean {
  spend(list.length)
  return list.some((item) => isEqual(item, value))
}

function itemsOf({ shape }: Part): Shape {
  return shape.items ?? ANYTHING
}

function checkOrdered(part: Part, site: Site): void {
  if (ORDERED.some((kind) => canBe(part.shape, kind))) return
  refuse(site, part, `${textOf(site, part)} is ${describeShape(part.shape)}, which has no order`)
}

/** Two sides that can never be of one kind can never be equal either: somebody meant something else. */
function checkComparable(left: Part, right: Part, operator: string, site: Site): void {
  const [one, other] = [left.shape, right.shape]
  if (one.kinds === undefined || other.kinds === undefined || isOnlyNull(one) || isOnlyNull(other)) return
  if (one.kinds.some((kind) => canBe(other, kind))) return
  const times = [one, other].some((shape) => canBe(shape, 'timestamp')) && [one, other].some((s) => canBe(s, 'text'))
  const hint = times ? '; write timestamp(…) around the text' : ''
  const sides = `${describeShape(one)} with ${describeShape(other)}`
  refuse(site, { start: left.start, end: right.end }, `${operator} compares ${sides}${hint}`)
}

const ORDERED: readonly Kind[] = ['number', 'text', 'bool', 'timestamp', 'duration']
