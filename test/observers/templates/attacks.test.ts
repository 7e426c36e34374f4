import { describe, expect, it } from 'vitest'
import { parseJson } from '../../../src/events/index.ts'
import { compileTemplate, createFilters, type Target, TemplateError } from '../../../src/observers/templates/index.ts'
import { refusedAtLoad, render, renderTree, scopeWith } from './support.ts'

/** What comes out, or `refused`. Anything that is not a TemplateError fails the test. */
function attempt(source: string, payload: unknown): string {
  try {
    return compileTemplate(source, { target: 'plain' }).render(scopeWith(payload, { SHOP: 'listed' }))
  } catch (error) {
    if (error instanceof TemplateError) return 'refused'
    throw error
  }
}

const payload = { name: 'Ada', items: [1], total: 5 }

describe('a template cannot get out', () => {
  it.each([
    '{{ event.constructor.constructor("return process.pid")() }}',
    '{{ name.constructor }}',
    "{{ name['constructor'] }}",
    "{{ items['constructor'] }}",
    '{{ items.constructor.constructor }}',
    '{{ payload.__proto__ }}',
    "{{ payload['__proto__'] }}",
    "{{ payload['con' + 'structor'] }}",
    '{{ payload.toString }}',
    '{{ payload.hasOwnProperty }}',
    '{{ payload.valueOf() }}',
    '{{ __proto__ }}',
    '{{ constructor }}',
    '{{ toString }}',
    '{{ this }}',
    '{{ self }}',
    '{{ globalThis }}',
    '{{ process.env.PATH }}',
    '{{ process }}',
    '{{ require("fs") }}',
    '{{ env.PATH }}',
    '{{ env.constructor }}',
    "{{ env['__proto__'] }}",
    '{{ range(1000000000) }}',
    '{{ cycler.__init__.__globals__ }}',
    '{{ items.map }}',
    '{{ items.length }}',
    '{{ name | constructor }}',
    '{{ name | __proto__ }}',
    '{{ name | toString }}',
    '{{ name | hasOwnProperty }}',
    '{{ upper }}',
    '{{ default }}',
    '{{ upper.constructor }}',
    '{% for x in items.constructor %}{{ x }}{% endfor %}',
    '{% for x in items %}{{ loop.constructor }}{{ x.constructor }}{{ loop.__proto__ }}{% endfor %}',
    '{% include "/etc/passwd" %}',
    '{% include "../../secret" %}',
    '{% extends "/etc/passwd" %}',
    '{% import "../x" as x %}',
    '{% raw %}{% endraw %}',
  ])('%s gives nothing', (source) => {
    expect(['', 'refused']).toContain(attempt(source, payload))
  })

  it('sees the variables that are listed and no more', () => {
    expect(attempt('{{ env }}', payload)).toBe('{"SHOP":"listed"}')
  })

  it('shows fields of such names when the payload has them', () => {
    const odd = parseJson('{"__proto__": {"x": 1}, "constructor": "c", "toString": "t", "hasOwnProperty": 5}')
    const source = "{{ payload['__proto__'] }} {{ constructor }} {{ payload.toString }} {{ hasOwnProperty + 1 }}"
    expect(render(source, odd)).toBe('{"x":1} c t 6')
    expect(render('{{ payload }}', odd)).toBe(
      '{"__proto__":{"x":1},"constructor":"c","toString":"t","hasOwnProperty":5}',
    )
    expect(render('{% for key in payload %}{{ key }} {% endfor %}', odd)).toContain('__proto__ constructor')
  })

  it('changes no prototype', () => {
    const before = Object.getOwnPropertyNames(Object.prototype).length
    const odd = parseJson('{"__proto__": {"polluted": true}}')
    render('{% for x in [payload] %}{{ x }}{{ x | json_pretty }}{% endfor %}', odd)
    renderTree({ a: '{{ payload }}' }, odd)
    expect(Object.getOwnPropertyNames(Object.prototype)).toHaveLength(before)
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  it('runs no getter or toJSON that data brings along as text', () => {
    expect(render('{{ x }}', { x: { toJSON: 'no function', toString: 'neither' } })).toBe(
      '{"toJSON":"no function","toString":"neither"}',
    )
  })

  it('never calls a function that stands in a payload made in memory', () => {
    let called = 0
    const touch = () => called++
    for (const source of ['{{ f }}', '{{ f() }}', '{{ o.f }}', '{% for x in f %}{% endfor %}', '{{ f | upper }}'])
      attempt(source, { f: touch, o: { f: touch } })
    expect(called).toBe(0)
  })
})

describe('data stays data', () => {
  const nasty = [
    '{{ env.SHOP }}',
    '{% for x in y %}',
    '{#',
    '}}',
    '{{',
    '$' + '{env:HOME}',
    '%7B%7B',
    '\u2028',
    '{{{{}}}}',
  ]
  const targets: Target[] = ['plain', 'slack', 'json', 'html']

  it.each(targets)('in %s text, also after a second filter and in a loop', (target) => {
    for (const x of nasty) {
      const source = '{{ x }}|{{ x | trim }}|{% for y in [x] %}{{ y }}{% endfor %}|{{ none | default(x) }}'
      expect(render(source, { x }, { target })).toBe([x, x.trim(), x, x].join('|'))
    }
  })

  it('keeps a filter registered under an odd name apart from objects', () => {
    const filters = createFilters({ valueOf: () => 'mine' })
    expect(render('{{ x | valueOf }}', {}, { filters })).toBe('mine')
    expect(refusedAtLoad('{{ x | toString }}', { filters }).reason).toBe('there is no filter "toString"')
  })
})
