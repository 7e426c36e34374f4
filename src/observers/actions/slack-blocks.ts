/** Block Kit with templates in it. The field that a template stands in decides how its values are escaped. */
import type { Scope } from '../../conditions/index.ts'
import type { CompiledTree, TemplateCompiler, TextTarget } from '../action.ts'

export function compileBlocks(value: unknown, templates: TemplateCompiler): CompiledTree {
  const render = compile(value, 'blocks', templates)
  return { render }
}

/** As Slack asks for it: these three, and no other character. */
export function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

type Render = (scope: Scope) => unknown

function compile(value: unknown, key: string, templates: TemplateCompiler): Render {
  if (typeof value === 'string') {
    const target = targetOf(key)
    // The payload must not choose where a button leads.
    if (target === 'url') templates.firstHoleOfUrl(value)
    const text = templates.text(value, target, `blocks: ${key}`)
    return (scope) => text.render(scope)
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => compile(item, key, templates))
    return (scope) => items.map((render) => render(scope))
  }
  if (typeof value !== 'object' || value === null) return () => value
  const members = Object.entries(value).map(([name, member]) => [name, compile(member, name, templates)] as const)
  return (scope) => Object.fromEntries(members.map(([name, render]) => [name, render(scope)]))
}

function targetOf(key: string): TextTarget {
  if (key.endsWith('url')) return 'url'
  return PLAIN.has(key) ? 'plain' : 'slack'
}

/** Fields that Slack hands back or compares, and never shows. */
const PLAIN: ReadonlySet<string> = new Set(['type', 'value', 'action_id', 'block_id', 'style', 'emoji', 'name'])
