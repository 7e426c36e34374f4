import type { ASTNode } from '@marcbachmann/cel-js'
import { closest } from '../events/index.ts'
import { absence, type Part, type Place, type Run, refuse, type Site, textOf } from './part.ts'
import { EVENT_FIELDS, isReserved, RESERVED_NAMES, type ReservedName, type Scope } from './scope.ts'
import { ANYTHING, canBe, describeKind, describeShape, type KnownFields, type Shape } from './shape.ts'
import { Unresolved } from './unresolved.ts'
import { isMap, kindOfValue, readField } from './values.ts'

/** A name by itself: the item of a comprehension, a local of a template, a reserved name or a field of the payload. */
export function compileName(node: Extract<ASTNode, { op: 'id' }>, site: Site): Part {
  const { args: name, start, end } = node
  if (site.item?.name === name) return { run: (_scope, _locals, item) => item, shape: site.item.shape, start, end }
  if (site.locals.includes(name)) {
    return { run: (_, locals) => locals && readField(locals, name), shape: ANYTHING, start, end }
  }
  if (isReserved(name)) return { run: readReserved(name), shape: reservedShape(name, site), start, end }
  const shape = knownShape(site, node, name, site.fields, () => [
    ...site.locals,
    ...(site.item === undefined ? [] : [site.item.name]),
    ...RESERVED_NAMES,
  ])
  return { run: (scope) => readField(scope.fields, name), shape, start, end }
}

/** `customer.tier`. Of what is absent or null, every field is absent. */
export function compileField(node: Extract<ASTNode, { op: '.' }>, site: Site): Part {
  const { args, start, end } = node
  const [owner, name] = args
  const at = { start: node.pos, end }
  if (isName(owner, 'event')) return { ...compileEventField(name, at, site), start, end }
  if (isName(owner, 'env')) checkVariable(name, at, site)
  const part = site.compile(owner)
  if (!canBe(part.shape, 'map')) {
    refuse(site, at, `${textOf(site, part)} is ${describeShape(part.shape)}, which has no field ${name}`)
  }
  const shape = knownShape(site, at, name, part.shape.fields, () => [])
  return { run: readNamed(part, name), shape, start, end }
}

/** `items[0]`, `payload['a-b']`. An index beyond the end is absent, as a missing field is. */
export function compileIndex(node: Extract<ASTNode, { op: '[]' }>, site: Site): Part {
  const owner = site.compile(node.args[0])
  const index = site.compile(node.args[1])
  if (!canBe(owner.shape, 'map') && !canBe(owner.shape, 'list')) {
    refuse(site, owner, `${textOf(site, owner)} is ${describeShape(owner.shape)}, which cannot be indexed`)
  }
  const indexAbsent = absence(site, index)
  const run: Run = (scope, locals, item) => {
    const of = owner.run(scope, locals, item)
    const key = index.run(scope, locals, item)
    if (of instanceof Unresolved) return of
    if (key instanceof Unresolved) return key
    if (of === undefined || of === null) return undefined
    if (key === undefined || key === null) return indexAbsent
    return readAt(of, key, node)
  }
  const shape = canBe(owner.shape, 'map') ? ANYTHING : (owner.shape.items ?? ANYTHING)
  return { run, shape, start: node.start, end: node.end }
}

/**
 * `has(customer.tier)`, and `has(total)` for a field at top level: whether the field is there, even if it is null.
 * Asked of an absent object the answer is no.
 */
export function compileHas(node: ASTNode, argument: ASTNode | undefined, site: Site): Run {
  if (argument?.op === 'id' && !isReserved(argument.args) && site.item?.name !== argument.args) {
    const name = argument.args
    compileName(argument, site)
    if (site.locals.includes(name)) return (_, locals) => locals !== undefined && readField(locals, name) !== undefined
    return (scope) => readField(scope.fields, name) !== undefined
  }
  if (argument?.op !== '.' && argument?.op !== '[]') {
    return refuse(site, node, 'has() asks for one field, such as has(customer.tier)')
  }
  const { run } = argument.op === '.' ? compileField(argument, site) : compileIndex(argument, site)
  return (scope, locals, item) => {
    const value = run(scope, locals, item)
    return value instanceof Unresolved ? value : value !== undefined
  }
}

/** The shape of a field, or a mistake when it is known not to be there. */
export function knownShape(
  site: Site,
  at: Place,
  name: string,
  known: KnownFields | undefined,
  otherNames: () => readonly string[],
): Shape {
  if (known === undefined) return ANYTHING
  const shape = known.byName.get(name)
  if (shape !== undefined) return shape
  if (known.open) return ANYTHING
  return refuse(
    site,
    at,
    `the event has no field ${JSON.stringify(name)}`,
    closest(name, [...known.byName.keys(), ...otherNames()]),
  )
}

function readNamed(owner: Part, name: string): Run {
  return (scope, locals, item) => {
    const of = owner.run(scope, locals, item)
    if (isMap(of)) return readField(of, name)
    if (of === undefined || of === null) return undefined
    if (of instanceof Unresolved) return of
    return new Unresolved(owner, `${describeValue(of)} has no fields, so there is no field ${name}`)
  }
}

function readAt(of: unknown, key: unknown, at: Place): unknown {
  if (Array.isArray(of)) {
    const index = typeof key === 'bigint' ? Number(key) : key
    if (typeof index === 'number' && Number.isInteger(index) && index >= 0) return of[index]
    return new Unresolved(at, 'the index of a list is a whole number from 0 up')
  }
  if (!isMap(of)) return new Unresolved(at, `${describeValue(of)} cannot be indexed`)
  return typeof key === 'string' ? readField(of, key) : new Unresolved(at, 'the index of an object is text')
}

/** The kind of a value, for messages; never the value. */
export function describeValue(value: unknown): string {
  const kind = kindOfValue(value)
  return kind === undefined ? 'null' : describeKind(kind)
}

function readReserved(name: ReservedName): Run {
  switch (name) {
    case 'event':
      return (scope: Scope) => scope.eventView
    case 'payload':
      return (scope: Scope) => scope.payload
    case 'changes':
      return (scope: Scope) => scope.event.changes
    case 'previous':
      return (scope: Scope) => scope.event.previous
    case 'env':
      return (scope: Scope) => scope.env
  }
}

function reservedShape(name: ReservedName, { fields }: Site): Shape {
  if (name === 'payload') return fields === undefined ? ANYTHING : { kinds: ['map'], fields }
  return { kinds: ['map'] }
}

function compileEventField(name: string, at: Place, site: Site): Pick<Part, 'run' | 'shape'> {
  const field = EVENT_FIELDS.get(name)
  if (field !== undefined) return { run: field.read, shape: field.shape }
  const words = [...EVENT_FIELDS.keys()]
  if (isReserved(name)) {
    return refuse(site, at, `event has no field ${JSON.stringify(name)}; it stands by itself: ${name}`, name)
  }
  return refuse(
    site,
    at,
    `event has no field ${JSON.stringify(name)}; it has ${words.join(', ')}`,
    closest(name, words),
  )
}

function checkVariable(name: string, at: Place, site: Site): void {
  if (site.env === undefined || site.env.includes(name)) return
  const problem = `the environment variable ${JSON.stringify(name)} is not listed, so it cannot be read`
  refuse(site, at, problem, closest(name, site.env))
}

function isName(node: ASTNode, name: string): boolean {
  return node.op === 'id' && node.args === name
}
