import { describe, expect, it } from 'vitest'
import { textOf } from '../../src/search/document-text.ts'
import { indexFindings } from '../../src/search/findings.ts'
import { toHtml } from '../../src/search/highlight.ts'
import { toQueryText } from '../../src/search/query-text.ts'

describe('the text of a document', () => {
  it('is its strings, by how much they say', () => {
    const document = {
      tags: ['light', 'office'],
      maker: { name: 'Lumen', since: 1990 },
      items: [{ sku: 'a-100' }],
      total: 90,
      name: 'Desk lamp',
      title: 'For reading',
      text: 'Bright.',
    }
    expect(textOf(document)).toEqual({ a: 'For reading\nDesk lamp', b: 'light\noffice\nBright.', c: 'Lumen\na-100' })
  })

  it('ends somewhere, the name first', () => {
    const { a, b } = textOf({ text: 'x '.repeat(500_000), name: 'Lamp' })
    expect(a).toBe('Lamp')
    expect(b.length).toBeLessThan(100_001)
  })

  it('is no deeper than any stack', () => {
    let deep: Record<string, unknown> = { text: 'too deep' }
    for (let n = 0; n < 50_000; n++) deep = { deep }
    expect(textOf({ name: 'Lamp', deep })).toEqual({ a: 'Lamp', b: '', c: '' })
  })

  it('takes no name from a prototype, and holds nothing that Postgres has no place for', () => {
    expect(textOf(Object.create({ name: 'inherited' }))).toEqual({ a: '', b: '', c: '' })
    expect(textOf({ name: 'a\u0000b\ud800c' }).a).toBe('a b c')
  })
})

describe('what was typed', () => {
  it.each([
    ['desk la', 'desk ', `'la':*`, 'and'],
    ['la', '', `'la':*`, 'and'],
    ['desk or la', 'desk', `'la':*`, 'or'],
    ['or la', 'or ', `'la':*`, 'and'],
    ['"a b" la', '"a b" ', `'la':*`, 'and'],
    ['straße 12', 'straße ', `'12':*`, 'and'],
  ])('%s has a last word that may be a beginning', (text, before, word, joins) => {
    expect(toQueryText(text).prefix).toEqual({ before, word, joins })
  })

  it.each(['', '-la', '"desk la', 'desk"', `la'`, 'a:*', 'desk (la)'])('%j has none', (text) => {
    expect(toQueryText(text).prefix).toBeNull()
  })
})

it('a highlight is escaped before it is marked', () => {
  expect(toHtml(`<b>"a" & 'b'</b> \ue000hit\ue001`)).toBe(
    '&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt; <mark>hit</mark>',
  )
})

describe('what doctor says of indexes', () => {
  it('is how to mend one that was made with another language', () => {
    const found = indexFindings(
      [
        { name: `it's`, language: 'simple' },
        { name: 'b', language: 'german' },
      ],
      'german',
    )
    expect(found).toMatchObject([{ level: 'warning', fix: `aftercommit search reindex 'it'\\''s'` }])
    expect(indexFindings([], 'german')).toMatchObject([{ level: 'ok' }])
  })
})
