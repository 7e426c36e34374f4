import { compileExpression, type KnownFields, type Scope } from '../../conditions/index.ts'
import { type Budget, DEFAULT_BUDGET, type Meter } from './budget.ts'
import { compileNodes, compileWhole, type NodeContext, type Write } from './compile.ts'
import { startRun, type Value } from './compile-value.ts'
import { checkWhole, needsValues, type Target } from './escape.ts'
import type { ExpressionCompiler } from './expressions.ts'
import { createFilters, type Filters } from './filters.ts'
import { type Node, parse } from './parse.ts'
import { type Fail, type Piece, scan } from './scan.ts'
import { at, type Refusal, TemplateError } from './template-error.ts'

export interface TemplateOptions {
  /** What it fills, which decides the escaping. */
  readonly target: Target
  /** What it is called in messages; `template` unless told. */
  readonly name?: string
  /** Whether an absent value is an error; so for `url` and `header`, otherwise empty text, unless told. */
  readonly required?: boolean
  /** The built-in ones unless told. */
  readonly filters?: Filters
  /** The language of conditions unless told. */
  readonly expressions?: ExpressionCompiler
  /** The fields of the payload, where its schema tells: naming another is then a mistake. */
  readonly fields?: KnownFields | undefined
  /** The environment variables that are listed: naming another is then a mistake. */
  readonly env?: readonly string[] | undefined
  readonly budget?: Budget
}

export interface Template {
  readonly source: string
  /** It has neither holes nor tags, so it renders the same for every event. */
  readonly isConstant: boolean
  /** Throws a `TemplateError`, and then there is no text at all. */
  render(scope: Scope): string
}

/** Compiles a template once; every mistake that can be known without an event is thrown here as a `TemplateError`. */
export function compileTemplate(source: string, options: TemplateOptions): Template {
  const { constant, write, finish } = prepareTemplate(source, options).text()
  if (constant !== undefined) return { source, isConstant: true, render: () => constant }
  const budget = { ...DEFAULT_BUDGET, ...options.budget }
  const render = (scope: Scope) => {
    const run = startRun(scope, budget)
    write(run)
    return finish(run.meter)
  }
  return { source, isConstant: false, render }
}

/** A template that was read. Its expressions are compiled with what is asked for, once. */
export interface PreparedTemplate {
  text(): PreparedText
  /** For a template that is exactly one hole: its value, whatever its type. */
  readonly whole: (() => Value) | undefined
}

/** Text that is to be written on a meter it may share with others. */
export interface PreparedText {
  /** What it renders for every event, when it has neither holes nor tags. */
  readonly constant: string | undefined
  readonly write: Write
  /** Takes what was written and checks it as a whole. */
  readonly finish: (meter: Meter) => string
}

export function prepareTemplate(source: string, options: TemplateOptions): PreparedTemplate {
  const context = contextOf(source, options)
  const pieces = scan(source, context.fail)
  const nodes = parse(pieces, context.fail)
  const [only] = nodes
  return {
    text: () => ({
      constant: constantOf(nodes, context),
      write: compileNodes(nodes, [], context),
      finish: compileFinish(pieces, context),
    }),
    whole: nodes.length === 1 && only?.kind === 'hole' ? () => compileWhole(only, context) : undefined,
  }
}

function constantOf(nodes: readonly Node[], { name, source, target }: NodeContext): string | undefined {
  let text = ''
  for (const node of nodes) {
    if (node.kind !== 'text') return undefined
    text += node.text
  }
  // An address without holes is as its author wants it.
  if (target !== 'url') at({ name, source, offset: 0 }, 'load', () => checkWhole(target, text))
  return text
}

function compileFinish(pieces: readonly Piece[], { name, source, target }: NodeContext): (meter: Meter) => string {
  const first = pieces.find(({ kind }) => kind !== 'text')
  const place = { name, source, offset: first?.offset ?? 0 }
  return (meter) =>
    at(place, 'render', () => {
      const text = meter.take()
      checkWhole(target, text)
      return text
    })
}

function contextOf(source: string, options: TemplateOptions): NodeContext {
  const { target, name = 'template', required = needsValues(target) } = options
  const { filters = BUILT_IN, expressions = compileExpression, fields, env } = options
  return { target, name, source, required, filters, expressions, fields, env, fail: failFor(name, source) }
}

/** Makes the errors of a template that is being loaded. */
export function failFor(name: string, source: string): Fail {
  return (offset: number, { reason, advice, suggestion }: Refusal) =>
    new TemplateError({ name, source, offset }, 'load', {
      reason,
      advice,
      ...(suggestion === undefined ? {} : { suggestion }),
    })
}

const BUILT_IN = createFilters()
