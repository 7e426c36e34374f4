/** Tables for people: as wide as needed and no wider than the terminal, where long values give way to `…`. */
import { printable } from '../printable.ts'
import type { Colors } from './output.ts'

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** How narrow it may become when room is short; a column without it keeps its width. */
  readonly min?: number
}

export interface TableOptions {
  readonly width: number
  readonly colors: Colors
}

const GAP = 2

export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { width, colors }: TableOptions,
): string[] {
  const cells = rows.map((row) => columns.map((_, at) => printable(row[at] ?? '')))
  const titles = columns.map(({ title }) => title.toUpperCase())
  const widths = fitWidths(columns, [titles, ...cells], width)
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => pad(cell, widths[at]!, columns[at]!.align))
      .join(' '.repeat(GAP))
      .trimEnd()
  return [colors.dim(line(titles)), ...cells.map(line)]
}

/** As wide as the widest cell; when that is too much, the widest of those that may shrink gives way first. */
function fitWidths(columns: readonly Column[], rows: readonly (readonly string[])[], width: number): number[] {
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => widthOf(row[at]!))))
  for (;;) {
    const total = widths.reduce((sum, one) => sum + one, GAP * (columns.length - 1))
    if (total <= width) return widths
    const shrinkable = columns.flatMap(({ min }, at) => (min !== undefined && widths[at]! > min ? [at] : []))
    if (shrinkable.length === 0) return widths
    const widest = shrinkable.reduce((one, other) => (widths[other]! > widths[one]! ? other : one))
    widths[widest]!--
  }
}

function pad(text: string, width: number, align: Column['align']): string {
  const cut = widthOf(text) > width ? `${cutTo(text, width - 1)}…` : text
  const padding = ' '.repeat(Math.max(0, width - widthOf(cut)))
  return align === 'right' ? padding + cut : cut + padding
}

function cutTo(text: string, width: number): string {
  let cut = ''
  for (const character of text) {
    if (widthOf(cut + character) > width) break
    cut += character
  }
  return cut
}

/** Columns that a terminal uses: marks join the letter before them, East Asian characters and emoji take two. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += /\p{Mark}|\u200d/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
