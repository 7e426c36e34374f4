import { describe, expect, it } from 'vitest'
import { AftercommitError } from '../src/errors.ts'
import { printable, printableLines } from '../src/printable.ts'

const csi = '\u009b31m'
const turned = '\u202egnp.exe\u202c'

describe('printable', () => {
  it.each([
    ['C0', 'a\nb\u001b[2J\u007f', 'a\\u000ab\\u001b[2J\\u007f'],
    ['C1', csi, '\\u009b31m'],
    ['bidirectional', turned, '\\u202egnp.exe\\u202c'],
    ['isolating', '\u2066a\u2069\u061c\u200f', '\\u2066a\\u2069\\u061c\\u200f'],
    ['invisible', 'a\u200bb\ufeffc\u00add', 'a\\u200bb\\ufeffc\\u00add'],
    ['line-breaking', 'a\u0085b\u2028c\u2029', 'a\\u0085b\\u2028c\\u2029'],
    ['tag', 'a\u{e0041}', 'a\\udb40\\udc41'],
    ['half', 'a\ud800b', 'a\\ud800b'],
  ])('spells out %s characters', (_, text, shown) => {
    expect(printable(text)).toBe(shown)
    expect(printable(printable(text))).toBe(shown)
  })

  it('leaves the letters of all scripts and joined emoji as they are', () => {
    for (const text of ['plain – ünïcödé 東京 שלום فارسی', '👩\u200d🚀', 'می\u200cخواهم'])
      expect(printable(text)).toBe(text)
  })

  it('keeps line breaks and tabs of a text of several lines, and nothing that returns to their beginning', () => {
    expect(printableLines('a\n\tb\rc\u001b[1A')).toBe('a\n\tb\\u000dc\\u001b[1A')
  })

  it('changes nothing of what JSON means', () => {
    const value = { [turned]: csi, tag: '\u{e0041}' }
    expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value)
  })
})

it('an error spells out characters of a name that it quotes, in its message and its stack', () => {
  const error = new AftercommitError('BAD_EVENT', `The event "${csi}${turned}" is unknown.\n\nSee the docs.`)
  expect(error.message).toBe('The event "\\u009b31m\\u202egnp.exe\\u202c" is unknown.\n\nSee the docs.')
  expect(error.stack).not.toContain('\u009b')
})
