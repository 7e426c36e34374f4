import type { ASTNode } from '@marcbachmann/cel-js'
import { spend } from './budget.ts'
import type { Call } from './calls.ts'
import { LONGEST_LIST } from './limits.ts'
import { asTest } from './logic.ts'
import { describeValue } from './names.ts'
import { absence, type Part, type Run, refuse, type Site, textOf } from './part.ts'
import { isReserved } from './scope.ts'
import { ANYTHING, BOOL, canBe, describeShape, type Shape } from './shape.ts'
import { Unresolved } from './unresolved.ts'
import { isMap, keysOf } from './values.ts'

/**
 * `items.exists(i, i.quantity > 10)` and its siblings: an expression tried on every item of a list, or on every key of
 * an object. They do not nest and the list is bounded, so the work grows with the payload and never with its square.
 */
export const COMPREHENSIONS = ['all', 'exists', 'exists_one', 'filter', 'map'] as const
type Name = (typeof COMPREHENSIONS)[number]

export function isComprehension({ name }: Call): boolean {
  return (COMPREHENSIONS as readonly string[]).includes(name)
}

export function compileComprehension(call: Call, receiver: ASTNode, site: Site): { run: Run; shape: Shape } {
  const name = call.name as Name
  const [variable, ...bodies] = call.args
  if (variable?.op !== 'id' || bodies.length < 1 || bodies.length > (name === 'map' ? 2 : 1)) {
    return refuse(site, call.node, `${name}() takes a name and an expression, such as items.${name}(i, i.quantity > 1)`)
  }
  if (site.item !== undefined) {
    refuse(site, call.node, `${name}() within ${site.item.name} => … would try every item with every other`)
  }
  if (isReserved(variable.args)) refuse(site, variable, `${variable.args} is a reserved name; call the item otherwise`)
  const list = site.compile(receiver)
  if (!canBe(list.shape, 'list') && !canBe(list.shape, 'map')) {
    refuse(site, list, `${textOf(site, list)} is ${describeShape(list.shape)}, where a list is needed`)
  }
  const shape = canBe(list.shape, 'map') ? ANYTHING : (list.shape.items ?? ANYTHING)
  const compiled = bodies.map((body) => site.compileBody(body, { name: variable.args, shape }))
  const cost = compiled.reduce((sum, { size }) => sum + size, 1)
  const [first, second] = compiled.map(({ part }) => part)
  const work = workOf(name, first!, second, site)
  const absent = absence(site, list)
  return {
    run: (scope, locals, item) => {
      const value = list.run(scope, locals, item)
      if (value instanceof Unresolved) return value
      if (value === undefined || value === null) return absent
      const items = itemsOf(value, list)
      if (items instanceof Unresolved) return items
      return work(items, (part, each) => {
        spend(cost)
        return part(scope, locals, each)
      })
    },
    shape:
      name === 'filter' || name === 'map' ? { kinds: ['list'], ...(name === 'filter' ? { items: shape } : {}) } : BOOL,
  }
}

type Work = (items: readonly unknown[], evaluate: (part: Run, item: unknown) => unknown) => unknown

function workOf(name: Name, body: Part, result: Part | undefined, site: Site): Work {
  switch (name) {
    case 'exists':
      return settleBy(true, asTest(body, site))
    case 'all':
      return settleBy(false, asTest(body, site))
    case 'exists_one':
      return count(asTest(body, site))
    case 'filter':
      return collect(asTest(body, site), undefined)
    case 'map':
      return result === undefined ? collect(undefined, body.run) : collect(asTest(body, site), result.run)
  }
}

/** The first item that settles the matter does so, even after one that could not be resolved. */
function settleBy(settles: boolean, test: Run): Work {
  return (items, evaluate) => {
    let unresolved: unknown
    for (const item of items) {
      const value = evaluate(test, item)
      if (value === settles) return settles
      if (value instanceof Unresolved) unresolved ??= value
    }
    return unresolved ?? !settles
  }
}

function count(test: Run): Work {
  return (items, evaluate) => {
    let found = 0
    for (const item of items) {
      const value = evaluate(test, item)
      if (value instanceof Unresolved) return value
      if (value === true) found++
    }
    return found === 1
  }
}

function collect(test: Run | undefined, result: Run | undefined): Work {
  return (items, evaluate) => {
    const collected: unknown[] = []
    for (const item of items) {
      const isWanted = test === undefined || evaluate(test, item)
      if (isWanted instanceof Unresolved) return isWanted
      if (isWanted !== true) continue
      const value = result === undefined ? item : evaluate(result, item)
      if (value instanceof Unresolved) return value
      collected.push(value ?? null)
    }
    return collected
  }
}

function itemsOf(value: unknown, list: Part): readonly unknown[] | Unresolved {
  const items = isMap(value) ? keysOf(value) : value
  if (!Array.isArray(items)) return new Unresolved(list, `${describeValue(value)} is no list to go through`)
  if (items.length <= LONGEST_LIST) return items
  return new Unresolved(list, `it has ${items.length} items, and ${LONGEST_LIST} are the most that are gone through`)
}
