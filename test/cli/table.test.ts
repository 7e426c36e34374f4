import pc from 'picocolors'
import { describe, expect, it } from 'vitest'
import { renderTable, widthOf } from '../../src/cli/table.ts'
import { wrap } from '../../src/cli/wrap.ts'

const colors = pc.createColors(false)
const columns = [
  { title: 'n', align: 'right' as const },
  { title: 'name', min: 6 },
  { title: 'note', min: 4 },
]
const rows = [
  ['1', 'a name that goes on and on', 'short'],
  ['1000', 'b', 'x'],
]

describe('a table', () => {
  it('is as wide as its cells where there is room', () => {
    expect(renderTable(columns, rows, { width: Number.POSITIVE_INFINITY, colors })).toEqual([
      '   N  NAME                        NOTE',
      '   1  a name that goes on and on  short',
      '1000  b                           x',
    ])
  })

  it('takes room from the widest column that may give some', () => {
    expect(renderTable(columns, rows, { width: 24, colors })).toEqual([
      '   N  NAME         NOTE',
      '   1  a name tha…  short',
      '1000  b            x',
    ])
  })

  it('keeps what a column needs at least, however narrow the terminal', () => {
    const lines = renderTable(columns, rows, { width: 5, colors })
    expect(lines[1]).toBe('   1  a nam…  sho…')
  })

  it('counts characters as a terminal does', () => {
    expect(widthOf('東京')).toBe(4)
    expect(widthOf('e\u0301')).toBe(1)
    const [, first, second] = renderTable(
      [{ title: 'x', min: 3 }, { title: 'y' }],
      [
        ['東京都', 'a'],
        ['abc', 'b'],
      ],
      { width: 8, colors },
    )
    expect(first).toBe('東京…  a')
    expect(second).toBe('abc    b')
  })
})

describe('wrapping', () => {
  it('breaks at spaces and gives a long word a line of its own', () => {
    expect(wrap('one two three four', 20)).toEqual(['one two three four'])
    expect(wrap(`a ${'x'.repeat(30)} b`, 20)).toEqual(['a', 'x'.repeat(30), 'b'])
    expect(wrap('the quick brown fox jumps', 20)).toEqual(['the quick brown fox', 'jumps'])
  })
})
