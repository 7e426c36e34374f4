import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../../../src/errors.ts'
import { ExactNumber } from '../../../src/events/index.ts'
import { compileTemplate } from '../../../src/observers/templates/index.ts'
import { refusedAtLoad, refusedAtRender, render, scopeWith } from './support.ts'

const order = {
  total: 90,
  note: null,
  customer: { name: 'Ada', email: 'ada@example.com' },
  items: [
    { sku: 'a-100', quantity: 1 },
    { sku: 'b-200', quantity: 2 },
  ],
  tags: [],
}

describe('a hole', () => {
  it.each([
    ['Total: {{ total }}', 'Total: 90'],
    ['{{total}}', '90'],
    ['{{ customer.name }}', 'Ada'],
    ['{{ payload.customer.name }}', 'Ada'],
    ["{{ customer['name'] }}", 'Ada'],
    ['{{ items[1].sku }}', 'b-200'],
    ['{{ event.aggregate_id }} {{ event.type }} {{ event.position }}', '7 order.placed 42'],
    ['{{ event.occurred_at }}', '2026-03-01T12:00:00.000Z'],
    ['{{ event.metadata.correlation_id }}', 'corr-1'],
    ['{{ changes.status.new }}', 'secret-new'],
    ['{{ previous.status }}', 'secret-previous'],
    ['{{ total * 2 }}', '180'],
    ["{{ total > 50 ? 'large' : 'small' }}", 'large'],
    ["{{ 'a' + 'b' }}", 'ab'],
    ['{{ true }}', 'true'],
    ['{{ 1.5 }}', '1.5'],
  ])('%s renders %s', (source, text) => {
    expect(render(source, order)).toBe(text)
  })

  it.each(['{{ missing }}', '{{ note }}', '{{ customer.missing.deeper }}', '{{ items[7].sku }}', '{{ missing * 2 }}'])(
    '%s of what is absent or null is empty text',
    (source) => {
      expect(render(`<${source}>`, order)).toBe('<>')
    },
  )

  it('renders lists and objects as JSON', () => {
    expect(render('{{ customer }} {{ items[0] }} {{ tags }}', order)).toBe(
      '{"name":"Ada","email":"ada@example.com"} {"sku":"a-100","quantity":1} []',
    )
    expect(render('{{ event }}', order)).toContain('"aggregate_id":"7"')
  })

  it.each([
    [9007199254740993n, '9007199254740993'],
    [new ExactNumber('0.1000000000000000000001'), '0.1000000000000000000001'],
    [new ExactNumber('1e400'), '1e400'],
    [-0, '-0'],
    [0.1, '0.1'],
  ])('renders %s digit for digit', (n, text) => {
    expect(render('{{ n }}|{{ list }}', { n, list: [n] })).toBe(`${text}|[${text}]`)
  })

  it('takes text that looks like a template for data', () => {
    const note = '{{ env.SECRET }}{% if true %}{# x #}$' + '{env:SECRET}'
    expect(render('{{ note }}', { note }, { variables: { SECRET: 's3cret' } })).toBe(note)
  })

  it('may hold braces within quotes and within objects', () => {
    expect(render(`{{ '}}' }}{{ "{{" }}{{ {'a': {'b': 1}} }}`)).toBe('}}{{{"a":{"b":1}}')
    expect(render(`{{ 'it\\'s }}' }}`)).toBe("it's }}")
    expect(render(String.raw`{{ r'\}}' }}{{ '''a'}}''' }}`)).toBe("\\}}a'}}")
  })

  it('reads the variables that are listed and no other', () => {
    const variables = { SHOP_URL: 'https://shop.example.com' }
    expect(render('{{ env.SHOP_URL }}<{{ env.PATH }}>', {}, { variables })).toBe('https://shop.example.com<>')
    const error = refusedAtLoad('{{ env.SHOP_ULR }}', { env: ['SHOP_URL'] })
    expect(error.suggestion).toBe('SHOP_URL')
  })
})

describe('a filter', () => {
  it('follows a pipe that is neither doubled, nor in quotes, nor in brackets', () => {
    expect(render("{{ customer.name + '|' | upper }}", order)).toBe('ADA|')
    expect(render('{{ total > 100 || total == 90 }}', order)).toBe('true')
    expect(render('{{ total > 100 || total == 90 | upper }}', order)).toBe('TRUE')
    expect(render("{{ missing | default('a | b') | upper }}", order)).toBe('A | B')
  })

  it('takes expressions as arguments, by position or by name', () => {
    expect(render('{{ missing | default(customer.name) }}', order)).toBe('Ada')
    expect(render("{{ total | currency(code = 'EUR') }}", order)).toBe('€0.90')
    expect(render("{{ event.occurred_at | date(zone = 'Asia/Tokyo', format = 'HH:mm') }}", order)).toBe('21:00')
    expect(render("{{ total | currency(total > 50 ? 'EUR' : 'USD') }}", order)).toBe('€0.90')
  })

  it.each([
    ['{{ total | curency }}', 'there is no filter "curency"', 'currency'],
    ['{{ total | toString }}', 'there is no filter "toString"', undefined],
    ['{{ total | __proto__ }}', 'there is no filter "__proto__"', undefined],
    ['{{ total | default }}', 'filter "default" has the wrong number of arguments', undefined],
    ['{{ total | default(1, 2) }}', 'filter "default" has the wrong number of arguments', undefined],
    ['{{ total | upper(1) }}', 'filter "upper" has the wrong number of arguments', undefined],
    ["{{ total | date('YYYY', 'UTC', 1) }}", 'filter "date" has the wrong number of arguments', undefined],
    ["{{ total | date(tz = 'UTC') }}", 'filter "date" has no argument "tz"', undefined],
    ["{{ total | currency('USD', code = 'EUR') }}", 'an argument is given twice', undefined],
    ['{{ total | default(1,) }}', 'an argument is empty', undefined],
    ['{{ total | }}', 'what follows "|" is no filter', undefined],
    ['{{ items | length > 1 }}', 'what follows "|" is no filter', undefined],
    ['{{ | upper }}', 'there is no expression', undefined],
    ['{{ }}', 'there is no expression', undefined],
  ])('%s is refused when it is loaded', (source, reason, suggestion) => {
    expect(refusedAtLoad(source)).toMatchObject({ reason, suggestion })
  })
})

describe('{% if %}', () => {
  it.each([
    [120, 'large'],
    [60, 'medium'],
    [10, 'small'],
  ])('chooses for %s the branch %s', (total, text) => {
    const source = '{% if total > 100 %}large{% elif total > 50 %}medium{% else %}small{% endif %}'
    expect(render(source, { total })).toBe(text)
  })

  it.each([false, null, undefined, 0, '', [], {}, new ExactNumber('0.0'), 0n])('does not hold for %s', (value) => {
    expect(render('{% if value %}yes{% endif %}no', { value })).toBe('no')
  })

  it.each([true, 1, -1, 'no', [0], { a: null }, new ExactNumber('1e-400'), 1n])('holds for %s', (value) => {
    expect(render('{% if value %}yes{% else %}no{% endif %}', { value })).toBe('yes')
  })

  it('does not hold when it compares what is absent', () => {
    expect(render('{% if missing > 1 %}yes{% elif missing.size() > 0 %}yes{% else %}no{% endif %}')).toBe('no')
  })
})

describe('{% for %}', () => {
  it('repeats its body with the item and where it is in the list', () => {
    const source =
      '{% for item in items %}{% if loop.first %}[{% endif %}{{ loop.index }}:{{ item.sku }}' +
      '{% if !loop.last %}, {% else %}]{% endif %}{% endfor %}'
    expect(render(source, order)).toBe('[1:a-100, 2:b-200]')
  })

  it('nests, and gives the outer loop back', () => {
    const source =
      '{% for row in rows %}{% for cell in row %}{{ loop.index }}{{ cell }}{% endfor %};{{ loop.index }} {% endfor %}'
    expect(render(source, { rows: [['a', 'b'], ['c']] })).toBe('1a2b;1 1c;2 ')
  })

  it('goes through the keys of an object', () => {
    expect(render('{% for key in prices %}{{ key }}={{ prices[key] }};{% endfor %}', { prices: { a: 1, b: 2 } })).toBe(
      'a=1;b=2;',
    )
  })

  it.each([{ list: [] }, { list: null }, {}])('runs {%% else %%} for %j', (payload) => {
    expect(render('{% for x in list %}{{ x }}{% else %}none{% endfor %}', payload)).toBe('none')
  })

  it('hides a field of the same name, and only inside', () => {
    expect(render('{% for total in [1, 2] %}{{ total }}{% endfor %} {{ total }}', order)).toBe('12 90')
  })

  it('leaves loop alone where it is text or a field', () => {
    const payload = { a: { loop: 'field' }, loops: 2 }
    const body = "{{ 'loop' + a.loop + a .\n loop }}{{ loop.index }}{{ true ?loop.index : 0 }}{{ loops }}"
    expect(render(`{% for x in [1] %}${body}{% endfor %}`, payload)).toBe('loopfieldfield112')
  })

  it.each(['event', 'payload', 'loop', 'env', '__proto__', 'in', 'constructor'])('cannot call its item %s', (name) => {
    expect(refusedAtLoad(`{% for ${name} in items %}{% endfor %}`).reason).toContain('a meaning of its own')
  })

  it('refuses what is no list', () => {
    expect(refusedAtRender('{% for x in total %}{% endfor %}', order).reason).toContain('was given a number')
  })
})

describe('white space and comments', () => {
  it('keeps white space unless a dash eats it', () => {
    expect(render('a {{ 1 }} b')).toBe('a 1 b')
    expect(render('a {{- 1 -}} b')).toBe('a1b')
    expect(render('a\n  {%- if true -%}\n  b\n{%- endif %}\nc')).toBe('ab\nc')
    expect(render('a {#- gone -#} b')).toBe('ab')
    expect(render('{{ -1 }}{{- -1 }}')).toBe('-1-1')
  })

  it('leaves comments out, whatever is in them', () => {
    expect(render('a{# {{ nonsense | and %} " #}b')).toBe('ab')
  })

  it('keeps braces that open nothing', () => {
    expect(render('{ } }} %} #} {a} {')).toBe('{ } }} %} #} {a} {')
  })

  it('is constant without holes and tags', () => {
    const constant = compileTemplate('a{# b #}c', { target: 'plain' })
    expect([constant.isConstant, constant.source, constant.render(scopeWith({}))]).toEqual([true, 'a{# b #}c', 'ac'])
    expect(compileTemplate('{{ 1 }}', { target: 'plain' }).isConstant).toBe(false)
  })
})

describe('a mistake', () => {
  it.each([
    ['{{ total', '"{{" is never closed', 0],
    ['a {% if total %}', '{% if %} is never closed', 2],
    ['{% for x in y %}{% else %}', '{% for %} is never closed', 0],
    ['{# never', '"{#" is never closed', 0],
    ["{{ 'open }}", '"{{" is never closed', 0],
    ['ab{% endif %}', '{% endif %} stands alone', 2],
    ['{% if 1 %}{% endfor %}', '{% endfor %} stands alone', 10],
    ['{% if %}{% endif %}', '{% if %} has no condition', 0],
    ['{% for x of y %}{% endfor %}', '{% for %} cannot be read', 0],
    ['{% include "/etc/passwd" %}', 'there is no tag "include"', 0],
    ['{% import "../x" as y %}', 'there is no tag "import"', 0],
    ['{% set x = 1 %}', 'there is no tag "set"', 0],
    ['{% macro m() %}', 'there is no tag "macro"', 0],
  ])('%s is refused when it is loaded: %s', (source, reason, offset) => {
    expect(refusedAtLoad(source)).toMatchObject({ reason, offset, code: 'OB003', transient: false })
  })

  it('names the field, the line, the column and the nearest filter', () => {
    const error = refusedAtLoad('Dear {{ name }},\nyou owe {{ total | curency }}', { name: 'message' })
    expect(error).toBeInstanceOf(AftercommitError)
    expect(error).toMatchObject({ field: 'message', line: 2, column: 20, offset: 36, suggestion: 'currency' })
    expect(error.message).toBe(
      'message, line 2, column 20: there is no filter "curency", so the template is refused. Did you mean "currency"?\n\n' +
        '    2 | you owe {{ total | curency }}\n' +
        '      |                    ^',
    )
  })

  it('within an expression is marked where it is', () => {
    const error = refusedAtLoad('{{ total }}\n{{ total + }}')
    expect([error.line, error.column]).toEqual([2, 11])
    const [source, name] = ['{% for x in items %}{{ loop.index + nope() }}{% endfor %}', 'nope']
    expect(refusedAtLoad(source).offset).toBe(source.indexOf(name))
  })

  it('found when rendering is permanent, shows the template and never the data', () => {
    const error = refusedAtRender('Bearer 0123456789abcdef0123 {{ customer * 2 }}', { customer: 'secret-data' })
    expect(error.transient).toBe(false)
    expect(error.message).toContain('nothing was rendered')
    expect(error.message).toContain('{{ customer * 2 }}')
    expect(error.message).not.toContain('secret-data')
    expect(error.message).not.toContain('0123456789abcdef')
  })
})

describe('the examples of the guide', () => {
  const guide = readFileSync(new URL('../../../docs/guides/conditions-and-templates.md', import.meta.url), 'utf8')

  it('render what they say', () => {
    const [, message = ''] = /message = """\n([^"]+)"""/.exec(guide) ?? []
    expect(render(message, { ...order, customer: {}, total: 9000 })).toBe(
      'Order 7 of a guest for €90.00\n• 1 × a-100\n• 2 × b-200',
    )
    const examples = [...guide.matchAll(/`(\{\{ [^`]+ \}\})` → `([^`]+)`/g)]
    expect(examples.length).toBeGreaterThan(1)
    for (const [, source = '', text] of examples) expect(render(source.replaceAll('\\|', '|'), order)).toBe(text)
  })

  it('show the message that a mistake has', () => {
    const { message } = refusedAtLoad('Dear {{ name }},\nyou owe {{ total | curency }}', { name: 'message' })
    expect(guide).toContain(message)
  })
})

describe('another expression language', () => {
  it('can be brought by a test', () => {
    const asked: unknown[] = []
    const template = compileTemplate('{% for x in anything %}{{ x | upper }}{% endfor %}', {
      target: 'plain',
      expressions: (source, { locals }) => {
        asked.push([source, locals])
        return { evaluate: (_scope, known) => (source === 'x' ? known?.x : ['a', 'b']) }
      },
    })
    expect(template.render(scopeWith({}))).toBe('AB')
    expect(asked).toEqual([
      ['anything', []],
      ['x', ['x', '_lp_']],
    ])
  })

  it('may fail in its own way', () => {
    const cause = new Error('no such thing as secret-data')
    const template = compileTemplate('a {{ x }}', {
      target: 'plain',
      expressions: () => ({
        evaluate: () => {
          throw cause
        },
      }),
    })
    expect(() => template.render(scopeWith({}))).toThrow(
      expect.objectContaining({ code: 'OB003', offset: 5, cause, message: expect.not.stringContaining('secret-data') }),
    )
  })
})
