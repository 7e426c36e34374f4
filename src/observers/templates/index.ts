/**
 * Text with holes: `Order {{ event.aggregate_id }} for {{ total | currency('EUR') }}`. Templates look like Jinja and
 * their expressions are those of conditions. A template is compiled once, mistakes are found then, and the field it
 * fills decides how values are escaped: data never becomes structure. Rendering has a budget and runs no code that is
 * not in this folder, except registered filters.
 *
 * Start reading with template.ts. scan.ts and parse.ts read the source, compile.ts makes functions of it, escape.ts
 * holds the rules of the fields, filters.ts the list of filters.
 */
export type { Budget } from './budget.ts'
export type { Target } from './escape.ts'
export type { CompiledExpression, ExpressionCompiler, Locals } from './expressions.ts'
export { type CustomFilter, createFilters, type Filters } from './filters.ts'
export { compileTemplate, type Template, type TemplateOptions } from './template.ts'
export { TemplateError } from './template-error.ts'
export { compileTree, type TemplateTree } from './tree.ts'
export { checkUrlTemplate } from './url.ts'
