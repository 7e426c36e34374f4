import { scopeOf } from '../../../src/conditions/index.ts'
import {
  compileTemplate,
  compileTree,
  TemplateError,
  type TemplateOptions,
} from '../../../src/observers/templates/index.ts'
import { sampleEvent } from '../../events/sample-event.ts'
import { thrownBy } from '../../events/thrown.ts'

export type Options = Partial<TemplateOptions> & { variables?: Record<string, string> }

/** What an expression sees of an event with this payload. */
export function scopeWith(payload: unknown, variables: Record<string, string> = {}) {
  return scopeOf(sampleEvent({ payload }), variables)
}

export function render(source: string, payload: unknown = {}, { variables, ...options }: Options = {}): string {
  return compileTemplate(source, { target: 'plain', ...options }).render(scopeWith(payload, variables))
}

export function renderTree(
  tree: unknown,
  payload: unknown = {},
  options: Omit<TemplateOptions, 'target'> = {},
): unknown {
  return compileTree(tree, options).render(scopeWith(payload))
}

/** The error of a template that cannot even be compiled. */
export function refusedAtLoad(source: string, options: Options = {}): TemplateError {
  return thrownBy(TemplateError, () => compileTemplate(source, { target: 'plain', ...options }))
}

/** The error of a template that compiles and cannot be rendered for this payload. */
export function refusedAtRender(source: string, payload: unknown = {}, options: Options = {}): TemplateError {
  const template = compileTemplate(source, { target: 'plain', ...options })
  return thrownBy(TemplateError, () => template.render(scopeWith(payload)))
}
