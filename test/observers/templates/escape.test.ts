import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkUrlTemplate, compileTemplate, TemplateError } from '../../../src/observers/templates/index.ts'
import { thrownBy } from '../../events/thrown.ts'
import { refusedAtLoad, refusedAtRender, render, scopeWith } from './support.ts'

const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom(...'\r\n\0\t<>&"\'{}%#|\\/.:@?'), fc.string({ unit: 'binary' })),
})

describe('plain text', () => {
  it('is what the value is', () => {
    const property = fc.property(anyText, (x) => {
      expect(render('<{{ x }}>', { x })).toBe(`<${x}>`)
    })
    fc.assert(property)
  })
})

describe('an address', () => {
  const url = (payload: unknown) =>
    render('https://api.example.com/orders/{{ id }}?q={{ q }}', payload, { target: 'url' })

  it('percent-encodes every value', () => {
    expect(url({ id: 'a/b?c#d', q: 'x&y=ü @' })).toBe(
      'https://api.example.com/orders/a%2Fb%3Fc%23d?q=x%26y%3D%C3%BC%20%40',
    )
  })

  it('never changes its shape, whatever the values', () => {
    const before = compileTemplate('https://api.example.com/orders/{{ id }}/items?q={{ q }}', { target: 'url' })
    const property = fc.property(anyText, anyText, (id, q) => {
      let text: string
      try {
        text = before.render(scopeWith({ id, q }))
      } catch (error) {
        expect(error).toBeInstanceOf(TemplateError)
        return
      }
      const parsed = new URL(text)
      expect(parsed.origin).toBe('https://api.example.com')
      expect(parsed.pathname.split('/').map(decodeURIComponent)).toEqual(['', 'orders', id, 'items'])
      expect(parsed.hash).toBe('')
      expect([...parsed.searchParams]).toEqual([['q', q]])
    })
    fc.assert(property, { numRuns: 500 })
  })

  it.each(['.', '..'])('refuses %s as a step of the path, also in parts', (id) => {
    expect(refusedAtRender('https://a.example/x/{{ id }}/y', { id }, { target: 'url' }).reason).toContain(
      'step of the path',
    )
    const [first, rest] = [id.slice(0, 1), id.slice(1)]
    const source = 'https://a.example/x/{{ first }}{{ rest }}'
    expect(refusedAtRender(source, { first, rest }, { target: 'url' }).reason).toContain('step of the path')
    expect(render('https://a.example/x/{{ id }}a?p=/{{ id }}/', { id }, { target: 'url' })).toContain(`?p=/${id}/`)
  })

  it('encodes once when the template says so too', () => {
    expect(render('/{{ x | urlencode }}/{{ x | urlencode | upper }}', { x: 'a b' }, { target: 'url' })).toBe(
      '/a%20b/A%2520B',
    )
  })

  it('refuses half of a surrogate pair', () => {
    expect(refusedAtRender('/{{ x }}', { x: '\ud800' }, { target: 'url' }).reason).toContain('surrogate')
  })

  it.each(['{{ id }}', '{{ missing.deep }}', '{{ id * 2 }}', '{{ id | upper }}'])('needs a value for %s', (hole) => {
    for (const payload of [{}, { id: null }]) {
      const error = refusedAtRender(`https://a.example/${hole}`, payload, { target: 'url' })
      expect(error.reason).toBe('the value is absent or null, and this field needs one')
    }
    expect(render("https://a.example/{{ id | default('none') }}", {}, { target: 'url' })).toBe('https://a.example/none')
  })
})

describe('checkUrlTemplate', () => {
  it.each([
    ['https://a.example/{{ x }}', 18],
    ['http://a.example:8080/x?y={{ x }}', 26],
    ['https://a.example?x={{ x }}', 20],
    ['https://a.example/{% if x %}y{% endif %}', 18],
    ['https://{# the shop #}a.example/{{ x }}', 32],
    ['https://[::1]:8080/{{ x }}', 19],
    ['https://a.example/', undefined],
    ['not an address', undefined],
  ])('accepts %s', (source, firstHole) => {
    expect(checkUrlTemplate(source)).toEqual({ firstHole })
  })

  it.each([
    ['{{ base }}/x', 0],
    ['{{ scheme }}://a.example/', 0],
    ['https://{{ host }}/x', 8],
    ['https://a.{{ tenant }}.example/x', 10],
    ['https://a.example{{ path }}', 17],
    ['https://a.example:{{ port }}/', 18],
    ['https://user:{{ password }}@a.example/', 13],
    ['https://{% if x %}a{% else %}b{% endif %}.example/', 8],
    ['https:/{{ x }}/', 7],
    ['https:///{{ x }}/', 9],
    ['https://a.exa\tmple/{{ x }}', 19],
    ['/{{ x }}', 1],
    ['//{{ x }}/', 2],
    ['ftp://a.example/{{ x }}', 16],
    ['javascript://a.example/{{ x }}', 23],
  ])('refuses %s', (source, offset) => {
    const error = thrownBy(TemplateError, () => checkUrlTemplate(source))
    expect(error).toMatchObject({ field: 'url', offset, reason: 'an address has a hole before its path' })
  })
})

describe('a header', () => {
  it.each([
    ['a\rb', 'a line break'],
    ['a\nb', 'a line break'],
    ['a\r\nX-Admin: 1', 'a line break'],
    ['a\0', 'a line break or U+0000'],
    ['a\x7f', 'printable Latin-1'],
    ['a\x1b[0m', 'printable Latin-1'],
    ['日本', 'printable Latin-1'],
    ['€', 'printable Latin-1'],
  ])('refuses %j', (x, reason) => {
    const error = refusedAtRender('v={{ x }}', { x }, { target: 'header' })
    expect(error.reason).toContain(reason)
    expect(error.message).not.toContain(x)
  })

  it('refuses more than 8 kB', () => {
    expect(render('{{ x }}', { x: 'a'.repeat(8_192) }, { target: 'header' })).toHaveLength(8_192)
    expect(refusedAtRender('{{ x }}{{ y }}', { x: 'a'.repeat(8_192), y: 'b' }, { target: 'header' }).reason).toBe(
      'the header is longer than 8192 bytes',
    )
  })

  it('refuses a bad text of its own when it is loaded', () => {
    expect(refusedAtLoad('a\nb', { target: 'header' }).reason).toContain('a line break')
    expect(refusedAtLoad('{{ x }}\n', { target: 'header' }).reason).toContain('a line break')
    expect(refusedAtLoad('a'.repeat(8_193), { target: 'header' }).reason).toContain('longer than 8192')
  })

  it('needs its values', () => {
    expect(refusedAtRender('Bearer {{ token }}', {}, { target: 'header' }).reason).toContain('absent or null')
    expect(render('Bearer {{ token }}', {}, { target: 'header', required: false })).toBe('Bearer ')
  })

  it('never holds a line break, whatever the value', () => {
    const template = compileTemplate('v={{ x }};{{ x | trim }};{{ y | json }}', { target: 'header' })
    const property = fc.property(anyText, fc.jsonValue(), (x, y) => {
      try {
        expect(template.render(scopeWith({ x, y }))).toMatch(/^[\t\x20-\x7e\xa0-\xff]*$/)
      } catch (error) {
        expect(error).toBeInstanceOf(TemplateError)
      }
    })
    fc.assert(property, { numRuns: 500 })
  })
})

describe('HTML', () => {
  it('escapes values and not the template', () => {
    expect(render('<b title="{{ x }}">{{ x }}</b>', { x: `<a href='"'>&` }, { target: 'html' })).toBe(
      '<b title="&lt;a href=&#39;&quot;&#39;&gt;&amp;">&lt;a href=&#39;&quot;&#39;&gt;&amp;</b>',
    )
    expect(render('{{ x | json }}', { x: ['</script>'] }, { target: 'html' })).toBe('[&quot;&lt;/script&gt;&quot;]')
  })

  it('never holds markup from a value', () => {
    const template = compileTemplate('{{ x }}{% for y in ys %}{{ y | upper }}{% endfor %}', { target: 'html' })
    const property = fc.property(fc.jsonValue(), fc.array(anyText), (x, ys) => {
      const text = template.render(scopeWith({ x, ys }))
      expect(text).not.toMatch(/[<>"']/)
      expect(text.replace(/&(?:amp|lt|gt|quot|#39);/g, '')).not.toContain('&')
    })
    fc.assert(property, { numRuns: 500 })
  })
})

describe('Slack text', () => {
  it('escapes what would be a link, a mention or an entity', () => {
    expect(render('*{{ x }}*', { x: `<!channel> & "me"` }, { target: 'slack' })).toBe('*&lt;!channel&gt; &amp; "me"*')
    const property = fc.property(anyText, (x) => {
      expect(render('{{ x }}', { x }, { target: 'slack' })).not.toMatch(/[<>]/)
    })
    fc.assert(property)
  })
})

describe('a required field', () => {
  it('refuses what is absent in any kind of text', () => {
    const options = { target: 'plain', required: true, name: 'to' } as const
    expect(refusedAtRender('{{ customer.email }}', {}, options)).toMatchObject({ field: 'to' })
    expect(render('{{ email }}', { email: 'ada@example.com' }, options)).toBe('ada@example.com')
  })
})
