/** The template engine as actions use it. */
import type { TemplateCompiler } from '../action.ts'
import {
  type CustomFilter,
  checkUrlTemplate,
  compileTemplate,
  compileTree,
  createFilters,
  type ExpressionCompiler,
} from '../templates/index.ts'

export interface TemplateCompilerOptions {
  /** Filters of the application, beside the built-in ones. */
  readonly filters?: Readonly<Record<string, CustomFilter>>
  /** Those of conditions unless told. */
  readonly expressions?: ExpressionCompiler
}

export function createTemplateCompiler({ filters: own, expressions }: TemplateCompilerOptions = {}): TemplateCompiler {
  const shared = { filters: createFilters(own), ...(expressions && { expressions }) }
  return {
    text: (source, target, name) => compileTemplate(source, { ...shared, target, name }),
    tree: (value, name) => compileTree(value, { ...shared, name }),
    firstHoleOfUrl: (source) => checkUrlTemplate(source).firstHole,
  }
}
