import { expect, it } from 'vitest'
import { scopeOf } from '../../../src/conditions/index.ts'
import { ExactNumber } from '../../../src/events/index.ts'
import { createTemplateCompiler } from '../../../src/observers/actions/index.ts'
import { shareTemplates } from '../../../src/observers/config/index.ts'
import { testEvent } from '../../../src/testing/index.ts'

function counted() {
  const real = createTemplateCompiler()
  const compiled: string[] = []
  const templates = shareTemplates({
    text(source, target, name) {
      compiled.push(`${name} ${target}`)
      return real.text(source, target, name)
    },
    tree(value, name) {
      compiled.push(name)
      return real.tree(value, name)
    },
    firstHoleOfUrl: (source) => real.firstHoleOfUrl(source),
  })
  return { templates, compiled }
}

const scope = (watts: number) => scopeOf(testEvent('lamp.lit', { payload: { watts } }), {})

it('a text is compiled once for each field and kind of field, and renders each event for itself', () => {
  const { templates, compiled } = counted()
  const first = templates.text('{{ watts }} W', 'plain', 'message')
  const again = templates.text('{{ watts }} W', 'plain', 'message')
  templates.text('{{ watts }} W', 'html', 'message')
  templates.text('{{ watts }} W', 'plain', 'subject')
  templates.text('{{ watts }} Watt', 'plain', 'message')
  expect(compiled).toEqual(['message plain', 'message html', 'subject plain', 'message plain'])
  expect(first.render(scope(40))).toBe('40 W')
  expect(again.render(scope(60))).toBe('60 W')
})

it('a tree is compiled once, unless it holds what has no text of its own', () => {
  const { templates, compiled } = counted()
  for (let n = 0; n < 2; n++) {
    templates.tree({ watts: '{{ watts }}', list: [1, true, null] }, 'body')
    templates.tree({ watts: new ExactNumber('1.00') }, 'exact')
    templates.tree({ watts: 12345678901234567890n }, 'bigint')
  }
  expect(compiled).toEqual(['body', 'exact', 'bigint', 'exact', 'bigint'])
  const body = templates.tree({ watts: '{{ watts }}', list: [1, true, null] }, 'body')
  expect(body.render(scope(40))).toEqual({ watts: 40, list: [1, true, null] })
})

it('what is wrong is told each time', () => {
  const { templates } = counted()
  for (let n = 0; n < 2; n++) expect(() => templates.text('{{ watts', 'plain', 'message')).toThrow('message')
})
