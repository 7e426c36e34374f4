import type { ASTNode } from '@marcbachmann/cel-js'
import { CompileMistake } from './condition-error.ts'
import { withParentheses } from './parse.ts'
import type { Scope } from './scope.ts'
import type { KnownFields, Shape } from './shape.ts'
import { Unresolved } from './unresolved.ts'

/** Names that a template brings along, such as the variable of a loop. */
export type Locals = Readonly<Record<string, unknown>>

/**
 * Gives the value of one part of an expression: undefined for a field that is absent, Unresolved where there is no
 * value. `item` is the current item of the comprehension around it; there is one at most, since they do not nest.
 */
export type Run = (scope: Scope, locals: Locals | undefined, item: unknown) => unknown

/** One part of an expression, compiled: a function made of functions, so that no code is ever generated. */
export interface Part {
  readonly run: Run
  readonly shape: Shape
  readonly start: number
  readonly end: number
  /** For literals. */
  readonly constant?: { readonly value: unknown }
}

/** What is known around a node while it is compiled. */
export interface Site {
  readonly source: string
  /** Undefined when the fields of the payload are not known. */
  readonly fields: KnownFields | undefined
  readonly locals: readonly string[]
  /** The environment variables that may be read; undefined when that is left to the scope. */
  readonly env: readonly string[] | undefined
  /** The variable of the comprehension around, if there is one. */
  readonly item: { readonly name: string; readonly shape: Shape } | undefined
  compile(node: ASTNode): Part
  /** Compiles the body of a comprehension. */
  compileBody(node: ASTNode, item: { readonly name: string; readonly shape: Shape }): { part: Part; size: number }
}

/** Offsets into the source. */
export interface Place {
  readonly start: number
  readonly end: number
}

export function refuse(site: Site, at: Place, problem: string, suggestion?: string): never {
  throw new CompileMistake({ source: site.source, start: at.start, end: at.end, problem, suggestion })
}

/** What is given instead of a result when this operand is absent or null. Made once: it happens all the time. */
export function absence(site: Site, at: Place): Unresolved {
  const operand = textOf(site, at)
  return new Unresolved(at, `${operand} is absent or null`, operand)
}

export function textOf({ source }: Site, at: Place): string {
  const { start, end } = withParentheses(source, at)
  const text = source.slice(start, end)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
