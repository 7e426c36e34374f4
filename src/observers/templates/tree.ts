import type { Scope } from '../../conditions/index.ts'
import { ExactNumber } from '../../events/index.ts'
import { DEFAULT_BUDGET } from './budget.ts'
import { startRun, type Value } from './compile-value.ts'
import { prepareTemplate, type TemplateOptions } from './template.ts'
import { at, TemplateError } from './template-error.ts'
import { asData } from './text.ts'

export interface TemplateTree {
  /** Data for `stringifyJson`. One budget for all of it. */
  render(scope: Scope): unknown
}

/**
 * Compiles a body: every text in it is a template, every other value stays as it is, and keys are not templates. Text
 * that is exactly one `{{ hole }}` gives the value itself, whatever its type; null when it is absent. Whoever writes the
 * result as JSON escapes it, so no value can break out of its place.
 */
export function compileTree(value: unknown, options: Omit<TemplateOptions, 'target'> = {}): TemplateTree {
  const { name = 'body', budget } = options
  const read = compileBranch(value, name, 0)
  const limits = { ...DEFAULT_BUDGET, ...budget }
  return { render: (scope) => read(startRun(scope, limits)) }

  function compileBranch(branch: unknown, path: string, depth: number): Value {
    if (typeof branch === 'string') return compileLeaf(branch, options, path)
    const isBranch = Array.isArray(branch) || isObject(branch)
    if (isBranch && depth >= MAX_DEPTH) throw refused(path, `nests deeper than ${MAX_DEPTH} levels`)
    if (Array.isArray(branch)) {
      const items = branch.map((item, index) => compileBranch(item, `${path}[${index}]`, depth + 1))
      return (run) => items.map((item) => item(run))
    }
    if (!isObject(branch)) return keep(branch, path)
    const members = Object.entries(branch)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key, compileBranch(member, path + step(key), depth + 1)] as const)
    // fromEntries defines the keys: one called __proto__ stays a key.
    return (run) => Object.fromEntries(members.map(([key, member]) => [key, member(run)]))
  }
}

function compileLeaf(source: string, options: Omit<TemplateOptions, 'target'>, name: string): Value {
  const { text, whole } = prepareTemplate(source, { ...options, name, target: 'json' })
  if (whole === undefined) {
    const { constant, write, finish } = text()
    if (constant !== undefined) return () => constant
    return (run) => {
      write(run)
      return finish(run.meter)
    }
  }
  const read = whole()
  const place = { name, source, offset: 0, length: source.length }
  return (run) => {
    const value = read(run)
    return at(place, 'render', () => asData(value) ?? null)
  }
}

function keep(value: unknown, path: string): Value {
  if (typeof value === 'function' || typeof value === 'symbol' || value === undefined) {
    throw refused(path, `is ${value === undefined ? 'undefined' : `a ${typeof value}`}`)
  }
  if (typeof value === 'object' && value !== null && !(value instanceof Date || value instanceof ExactNumber)) {
    throw refused(path, 'is neither text, number, list nor object')
  }
  return () => value
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

function refused(path: string, problem: string): TemplateError {
  const place = { name: path, source: '', offset: 0 }
  return new TemplateError(place, 'load', { reason: `it ${problem}`, advice: 'Use what JSON can hold.' })
}

function step(key: string): string {
  return /^[A-Za-z_]\w{0,59}$/.test(key) ? `.${key}` : `[${JSON.stringify(key.slice(0, 40))}]`
}

/** As many levels as a payload may have. */
const MAX_DEPTH = 64
