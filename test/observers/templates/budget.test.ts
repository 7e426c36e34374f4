import { describe, expect, it } from 'vitest'
import { createFilters } from '../../../src/observers/templates/index.ts'
import { refusedAtLoad, refusedAtRender, render } from './support.ts'

const numbers = (length: number) => Array.from({ length }, (_, index) => index)

describe('the budget', () => {
  it('ends loops that multiply', () => {
    const source = '{% for a in list %}{% for b in list %}{% for c in list %}{% endfor %}{% endfor %}{% endfor %}'
    const error = refusedAtRender(source, { list: numbers(1_000) })
    expect(error).toMatchObject({ reason: 'more than 100000 steps are needed', transient: false, code: 'OB003' })
  })

  it('counts holes, turns and filters', () => {
    const list = numbers(10)
    const source = '{% for x in list %}{{ x | upper }}{% endfor %}'
    // The list, and then for each item a turn, a hole and a filter.
    expect(render(source, { list }, { budget: { steps: 31 } })).toBe('0123456789')
    expect(refusedAtRender(source, { list }, { budget: { steps: 30 } }).reason).toContain('30 steps')
  })

  it('refuses to loop over more than 10,000 items', () => {
    expect(render('{% for x in list %}{% endfor %}ok', { list: numbers(10_000) })).toBe('ok')
    const error = refusedAtRender('{% for x in list %}{% endfor %}', { list: numbers(10_001) })
    expect(error.reason).toBe('a list to loop over has more than 10000 items')
    const object = Object.fromEntries(numbers(100_000).map((key) => [`k${key}`, 1]))
    expect(refusedAtRender('{% for x in object %}{% endfor %}', { object }).reason).toContain('10000 items')
  })

  it('ends output beyond 1 MB, in bytes', () => {
    const x = 'a'.repeat(524_288)
    expect(render('{{ x }}{{ x }}', { x })).toHaveLength(1_048_576)
    expect(refusedAtRender('{{ x }}{{ x }}.', { x }).reason).toBe('the text would be longer than 1048576 bytes')
    expect(refusedAtRender('{{ x }}', { x: 'é'.repeat(524_289) }).reason).toContain('longer than')
    expect(refusedAtRender('{% for y in list %}{{ x }}{% endfor %}', { x, list: numbers(10_000) }).reason).toContain(
      'longer than',
    )
  })

  it('counts what escaping adds', () => {
    const budget = { bytes: 100 }
    expect(refusedAtRender('{{ x }}', { x: '&'.repeat(50) }, { target: 'html', budget }).reason).toContain('100 bytes')
  })

  it('bounds what a filter makes and what it reads', () => {
    const budget = { bytes: 100 }
    expect(refusedAtRender('{{ x | json | length }}', { x: numbers(100) }, { budget }).reason).toContain('as JSON')
    expect(refusedAtRender('{{ x | json_pretty }}', { x: numbers(30) }, { budget }).reason).toContain('100 bytes')
    const filters = createFilters({ grow: (value) => `${value}${value}` })
    expect(refusedAtRender(`{{ x${' | grow'.repeat(60)} }}`, { x: 'a' }, { filters }).reason).toContain('1048576 bytes')
    const source = '{% for y in list %}{{ x | upper | length }}{% endfor %}'
    expect(refusedAtRender(source, { x: 'a'.repeat(900_000), list: numbers(10_000) }).reason).toContain('steps')
  })

  it.each([
    '{{ size(x) }}',
    '{{ y in x }}',
    '{% if x %}{% endif %}',
    '{% if x | json %}{% endif %}',
    '{{ x | length }}',
  ])('charges %s in a loop for the size of the payload', (body) => {
    const source = `{% for y in list %}${body}{% endfor %}.`
    const list = numbers(1_000)
    expect(render(source, { x: { a: 1 }, list })).toMatch(/\.$/)
    expect(refusedAtRender(source, { x: { a: 'a'.repeat(900_000) }, list }).reason).toContain('steps')
  })

  it('writes a long text as pretty JSON', () => {
    const x = '\\"{'.repeat(100_000)
    expect(render('{{ x | json_pretty }}', { x })).toBe(JSON.stringify(x))
  })

  it('holds for templates that nest too deep, before anything runs', () => {
    const nest = (levels: number) => `${'{% if true %}'.repeat(levels)}x${'{% endif %}'.repeat(levels)}`
    expect(render(nest(32))).toBe('x')
    expect(refusedAtLoad(nest(33)).reason).toBe('blocks nest deeper than 32 levels')
    expect(refusedAtLoad(nest(50_000)).reason).toBe('blocks nest deeper than 32 levels')
  })

  it('holds for values that nest too deep, without a stack overflow', () => {
    const deep = Array.from({ length: 100_000 }).reduce<unknown>((inner) => [inner], 1)
    expect(refusedAtRender('{{ deep }}', { deep }).reason).toBe('the value cannot be written as JSON')
    expect(refusedAtRender('{{ deep | json_pretty }}', { deep }).reason).toBe('the value cannot be written as JSON')
    expect(render('{% for x in [1] %}{{ size(deep) }}{% endfor %}', { deep })).toBe('1')
  })

  it('reads a long template in linear time', () => {
    const source = '{{ x }} { {% if x %}y{% endif %}'.repeat(3_000)
    expect(render(source, { x: 1 })).toHaveLength(5 * 3_000)
    expect(refusedAtLoad('{'.repeat(200_000)).reason).toBe('"{{" is never closed')
    expect(refusedAtLoad(`{{ '${'\\'.repeat(200_000)}`).reason).toBe('"{{" is never closed')
    expect(refusedAtLoad(`{{ x ${'| '.repeat(100_000)}}}`).reason).toBe('what follows "|" is no filter')
  })
})
