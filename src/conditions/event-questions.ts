import type { ASTNode } from '@marcbachmann/cel-js'
import { changedFrom, changedTo, fieldChanged } from '../events/index.ts'
import type { Call } from './calls.ts'
import { knownShape } from './names.ts'
import { absence, type Part, type Place, type Run, refuse, type Site } from './part.ts'
import type { Scope } from './scope.ts'
import { canBe, describeShape } from './shape.ts'
import { Unresolved } from './unresolved.ts'
import { isMap, readField } from './values.ts'

/**
 * Questions about the event: `is_new()`, `is_deleted()`, `has_field('a.b')`, and what it changed, asked as
 * `changed_to('status', 'shipped')` or as `status_changed_to('shipped')`. An event that carries no changes cannot
 * answer the latter, and "no" would be a wrong answer, so asking it is an error.
 */
export function isEventQuestion({ name }: Call): boolean {
  return (
    name === 'is_new' || name === 'is_deleted' || name === 'has_field' || (CHANGED.test(name) && name !== 'changed')
  )
}

export function compileEventQuestion(call: Call, site: Site): Run {
  switch (call.name) {
    case 'is_new':
      expect(call, 0, 'is_new()', site)
      return ({ event }) => event.kind === 'created'
    case 'is_deleted':
      expect(call, 0, 'is_deleted()', site)
      return ({ event }) => event.kind === 'deleted'
    case 'has_field':
      return compileHasField(call, site)
    default:
      return compileChange(call, site)
  }
}

/** For suggestions. */
export const CHANGE_FUNCTIONS = ['field_changed', 'changed_to', 'changed_from', 'is_new', 'is_deleted', 'has_field']

/** `has_field('customer.address.zip')`: whether the payload has the field, even if it is null. */
function compileHasField(call: Call, site: Site): Run {
  expect(call, 1, "has_field('customer.tier')", site)
  const path = site.compile(call.args[0]!)
  if (typeof path.constant?.value === 'string') checkPath(path.constant.value, path, site)
  return withText(path, site, (scope, name) => hasPath(scope.payload, name))
}

function compileChange(call: Call, site: Site): Run {
  const [, owner = '', direction] = CHANGED.exec(call.name) ?? []
  const takesValue = direction !== undefined
  const isNamed = owner === '' || (owner === 'field_' && call.args.length === (takesValue ? 2 : 1))
  const form = `${call.name}(${[isNamed ? "'status'" : [], takesValue ? "'shipped'" : []].flat().join(', ')})`
  expect(call, Number(isNamed) + Number(takesValue), form, site)
  const field = isNamed ? site.compile(call.args[0]!) : constantText(owner.slice(0, -1), call.node)
  const value = takesValue ? site.compile(call.args.at(-1)!) : undefined
  checkField(field, value, site)
  return ask(field, value, direction, call.node, site)
}

function ask(field: Part, value: Part | undefined, direction: string | undefined, at: Place, site: Site): Run {
  const noChanges = new Unresolved(at, 'the event carries no changes, so it cannot say what changed')
  const question = direction === '_to' ? changedTo : changedFrom
  return withText(
    field,
    site,
    ({ event }, name, wanted) => {
      if (event.changes === null) return noChanges
      return value === undefined ? fieldChanged(event, name) : question(event, name, wanted ?? null)
    },
    value,
  )
}

/** Answers once the name of the field is there, and the value that the question is about. */
function withText(
  part: Part,
  site: Site,
  answer: (scope: Scope, text: string, wanted: unknown) => unknown,
  about?: Part,
): Run {
  if (!canBe(part.shape, 'text')) refuse(site, part, `the name of a field is text, not ${describeShape(part.shape)}`)
  const absent = absence(site, part)
  return (scope, locals, item) => {
    const wanted = about?.run(scope, locals, item)
    const value = part.run(scope, locals, item)
    if (wanted instanceof Unresolved) return wanted
    if (typeof value === 'string') return answer(scope, value, wanted)
    if (value instanceof Unresolved) return value
    return value === undefined || value === null ? absent : new Unresolved(part, 'the name of a field is text')
  }
}

function hasPath(payload: unknown, path: string): boolean {
  let value = payload
  for (const step of path.split('.')) {
    value = readStep(value, step)
    if (value === undefined) return false
  }
  return true
}

function readStep(value: unknown, step: string): unknown {
  if (isMap(value)) return readField(value, step)
  return Array.isArray(value) && /^\d{1,9}$/.test(step) ? value[Number(step)] : undefined
}

function checkPath(path: string, at: Place, site: Site): void {
  let known = site.fields
  for (const step of path.split('.')) known = knownShape(site, at, step, known, () => []).fields
}

function checkField(field: Part, value: Part | undefined, site: Site): void {
  const name = field.constant?.value
  if (typeof name !== 'string') return
  const { kinds } = knownShape(site, field, name, site.fields, () => [])
  if (kinds === undefined || value?.shape.kinds === undefined || value.shape.kinds.length === 0) return
  if (kinds.some((kind) => canBe(value.shape, kind))) return
  refuse(site, value, `${name} is ${describeShape({ kinds })} and never ${describeShape(value.shape)}`)
}

function constantText(value: string, { start, end }: ASTNode): Part {
  return { run: () => value, shape: { kinds: ['text'] }, constant: { value }, start, end }
}

function expect({ args, node, name }: Call, count: number, form: string, site: Site): void {
  if (args.length !== count) refuse(site, node, `${name}() is not called like this; write ${form}`)
}

/** `changed_to`, `changed_from`, `field_changed`, and the same with the name of a field before it. */
const CHANGED = /^(|\w+_)changed(_to|_from)?$/
