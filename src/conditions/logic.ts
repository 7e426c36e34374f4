import type { ASTNode } from '@marcbachmann/cel-js'
import { describeValue } from './names.ts'
import { absence, type Part, type Run, refuse, type Site, textOf } from './part.ts'
import { BOOL, canBe, describeShape, eitherShape } from './shape.ts'
import { Unresolved } from './unresolved.ts'

/**
 * `a && b && c`, `a || b || c`. As CEL has it, one operand that settles the matter does so even when another cannot be
 * resolved: `missing > 1 || total > 50` holds for a total of 60. Chains are compiled as one part, so that a long list
 * of alternatives is not deep.
 */
export function compileChain(node: Extract<ASTNode, { op: '&&' | '||' }>, site: Site): Part {
  const settles = node.op === '||'
  const operands = operandsOf(node).map((operand) => asTest(site.compile(operand), site))
  return {
    run: (scope, locals, item) => {
      let unresolved: unknown
      for (const operand of operands) {
        const value = operand(scope, locals, item)
        if (value === settles) return settles
        if (value instanceof Unresolved) unresolved ??= value
      }
      return unresolved ?? !settles
    },
    shape: BOOL,
    start: node.start,
    end: node.end,
  }
}

export function compileNot(node: Extract<ASTNode, { op: '!_' }>, site: Site): Part {
  const test = asTest(site.compile(node.args), site)
  return {
    run: (scope, locals, item) => {
      const value = test(scope, locals, item)
      return value instanceof Unresolved ? value : !value
    },
    shape: BOOL,
    start: node.start,
    end: node.end,
  }
}

export function compileChoice(node: Extract<ASTNode, { op: '?:' }>, site: Site): Part {
  const test = asTest(site.compile(node.args[0]), site)
  const [yes, no] = [site.compile(node.args[1]), site.compile(node.args[2])]
  return {
    run: (scope, locals, item) => {
      const value = test(scope, locals, item)
      if (value instanceof Unresolved) return value
      return (value === true ? yes : no).run(scope, locals, item)
    },
    shape: eitherShape(yes.shape, no.shape),
    start: node.start,
    end: node.end,
  }
}

/** A part that has to be true or false: whatever else it gives is unresolved. */
export function asTest(part: Part, site: Site): Run {
  if (!canBe(part.shape, 'bool')) {
    refuse(site, part, `${textOf(site, part)} is ${describeShape(part.shape)}, where true or false is needed`)
  }
  const absent = absence(site, part)
  const { run } = part
  return (scope, locals, item) => {
    const value = run(scope, locals, item)
    if (typeof value === 'boolean' || value instanceof Unresolved) return value
    if (value === undefined || value === null) return absent
    return new Unresolved(part, `${textOf(site, part)} is ${describeValue(value)}, where true or false is needed`)
  }
}

/** The tree leans to the left; walking it down that side is a loop, however long the chain. */
function operandsOf(chain: Extract<ASTNode, { op: '&&' | '||' }>): ASTNode[] {
  const operands: ASTNode[] = []
  let rest: ASTNode = chain
  while (rest.op === chain.op) {
    const [left, right] = rest.args as [ASTNode, ASTNode]
    operands.push(right)
    rest = left
  }
  return [...operands, rest].reverse()
}
