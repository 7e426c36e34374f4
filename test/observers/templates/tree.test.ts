import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExactNumber, parseJson, stringifyJson } from '../../../src/events/index.ts'
import { compileTree, createFilters, TemplateError } from '../../../src/observers/templates/index.ts'
import { thrownBy } from '../../events/thrown.ts'
import { renderTree, scopeWith } from './support.ts'

const refused = (tree: unknown) => thrownBy(TemplateError, () => compileTree(tree))

describe('a tree', () => {
  it('renders every text in it and leaves the rest alone', () => {
    const tree = { id: 'order-{{ id }}', n: 1, yes: true, none: null, list: ['{{ id }}!', { deep: '{{ name }} x' }] }
    expect(renderTree(tree, { id: 7, name: 'Ada' })).toEqual({
      ...{ id: 'order-7', n: 1, yes: true, none: null },
      list: ['7!', { deep: 'Ada x' }],
    })
  })

  it.each([
    [90, '90'],
    [9007199254740993n, '9007199254740993'],
    [new ExactNumber('0.1000000000000000000001'), '0.1000000000000000000001'],
    [new ExactNumber('1e400'), '1e400'],
    [-0, '-0'],
    ['text "quoted"', '"text \\"quoted\\""'],
    [true, 'true'],
    [null, 'null'],
    [undefined, 'null'],
    [[1, { a: 9007199254740993n }], '[1,{"a":9007199254740993}]'],
  ])('keeps the type of a value that fills a text alone, row %#', (x, json) => {
    expect(stringifyJson(renderTree({ x: '{{ x }}' }, { x }))).toBe(`{"x":${json}}`)
  })

  it('gives text as soon as there is anything else', () => {
    expect(
      renderTree([' {{ n }}', '{{ n }}{{ n }}', '{% if true %}{{ n }}{% endif %}', '{{- n -}}'], { n: 5 }),
    ).toEqual([...[' 5', '55', '5', 5]])
  })

  it('gives what filters give', () => {
    const tree = { count: '{{ items | length }}', sum: '{{ total | currency }}', text: '{{ items | json }}' }
    expect(renderTree(tree, { items: [1, 2], total: 9000 })).toEqual({ count: 2, sum: '$90.00', text: '[1,2]' })
    expect(stringifyJson(renderTree('{{ x | default(0) }}'))).toBe('0')
  })

  it('writes times and durations as text', () => {
    expect(stringifyJson(renderTree(['{{ event.occurred_at }}', "{{ duration('90m') }}"]))).toBe(
      '["2026-03-01T12:00:00.000Z","5400s"]',
    )
  })

  it('does not take keys for templates', () => {
    expect(renderTree({ '{{ id }}': '{{ id }}' }, { id: 1 })).toEqual({ '{{ id }}': 1 })
  })

  it('keeps keys such as __proto__ as keys', () => {
    const tree = parseJson('{"__proto__": {"polluted": "{{ id }}"}, "constructor": "x", "toString": "{{ id }}"}')
    const rendered = renderTree(tree, { id: 1 })
    expect(stringifyJson(rendered)).toBe('{"__proto__":{"polluted":1},"constructor":"x","toString":1}')
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  it('leaves out what is undefined, as JSON does', () => {
    expect(renderTree({ a: undefined, b: 1 })).toEqual({ b: 1 })
  })

  it('names the path of a mistake', () => {
    expect(refused({ items: [{ 'odd key': '{{ x | uper }}' }] })).toMatchObject({
      field: 'body.items[0]["odd key"]',
      suggestion: 'upper',
      offset: 7,
    })
    expect(refused([() => 1]).message).toBe(
      'body[0], line 1, column 1: it is a function, so the template is refused. Use what JSON can hold.',
    )
    expect(refused(new Map()).reason).toBe('it is neither text, number, list nor object')
  })

  it('refuses to nest deeper than 64 levels, without a stack overflow', () => {
    const nest = (levels: number) => Array.from({ length: levels }).reduce<unknown>((inner) => [inner], '{{ id }}')
    expect(stringifyJson(renderTree(nest(64), { id: 1 }))).toBe(`${'['.repeat(64)}1${']'.repeat(64)}`)
    expect(refused(nest(65)).reason).toContain('deeper than 64')
    expect(refused(nest(100_000)).reason).toContain('deeper than 64')
  })

  it('has one budget for all of its texts', () => {
    const tree = Array.from({ length: 10 }, () => 'n={{ x }}')
    const render = (bytes: number) => renderTree(tree, { x: 'é'.repeat(10) }, { budget: { bytes } })
    expect(render(220)).toHaveLength(10)
    expect(() => render(219)).toThrow(TemplateError)
  })

  it('refuses what is no data', () => {
    const filters = createFilters({ odd: () => new Map(), not_a_number: () => Number.NaN })
    expect(() => renderTree('{{ x | odd }}', {}, { filters })).toThrow(TemplateError)
    expect(() => renderTree('{{ x | not_a_number }}', {}, { filters })).toThrow(TemplateError)
  })

  it('always becomes JSON that reads back, with the values in their places', () => {
    const tree = compileTree({ a: '{{ x }}', b: ['"{{ y }}"', '{{ y }}'], c: { d: '{{ x | json }}' } })
    const property = fc.property(fc.jsonValue({ maxDepth: 5 }), fc.string({ unit: 'grapheme' }), (x, y) => {
      const text = y.replaceAll('\0', '')
      const value = JSON.parse(JSON.stringify(x).replaceAll('\\u0000', ''))
      const rendered = JSON.parse(stringifyJson(tree.render(scopeWith({ x: value, y: text }))))
      expect(rendered).toEqual({ a: value, b: [`"${text}"`, text], c: { d: stringifyJson(value) } })
    })
    fc.assert(property, { numRuns: 500 })
  })
})
