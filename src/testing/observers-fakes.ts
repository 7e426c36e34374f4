/** Conditions and templates that say what the test wants them to say, for tests of what happens then. */
import type { Condition, Conditions, Verdict } from '../conditions/index.ts'
import type { TemplateCompiler } from '../observers/index.ts'

export interface FakeConditions extends Pick<Conditions, 'condition'> {
  /** What this condition says of every event, word for word as the observer has it. */
  withResult(source: string, holds: boolean): this
}

/** Conditions that hold unless told otherwise. They are not parsed: any text will do. */
export function fakeConditions(): FakeConditions {
  const results = new Map<string, boolean>()
  return {
    withResult(source, holds) {
      results.set(source, holds)
      return this
    },
    condition: (source): Condition => {
      const verdict = (): Verdict => ((results.get(source) ?? true) ? { holds: true } : { holds: false })
      return { source, evaluate: verdict, explain: () => ({ verdict: verdict(), parts: [] }) }
    },
  }
}

export interface FakeTemplates extends TemplateCompiler {
  /** What this template renders to, word for word as the action has it. */
  withResult(source: string, text: string): this
}

/** Templates that render to their own source unless told otherwise. Nothing is parsed and nothing escaped. */
export function fakeTemplates(): FakeTemplates {
  const results = new Map<string, string>()
  const render = (source: string) => results.get(source) ?? source
  return {
    withResult(source, text) {
      results.set(source, text)
      return this
    },
    text: (source) => ({ isConstant: false, render: () => render(source) }),
    tree: (value) => ({ render: () => renderTree(value, render) }),
    firstHoleOfUrl(source) {
      const hole = source.indexOf('{{')
      return hole < 0 ? undefined : hole
    },
  }
}

function renderTree(value: unknown, render: (source: string) => string): unknown {
  if (typeof value === 'string') return render(value)
  if (Array.isArray(value)) return value.map((item) => renderTree(item, render))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renderTree(item, render)]))
}
