/** Multiranges of positions, as Postgres keeps and writes them: sorted, merged, `[from,to)`. */
export interface Range {
  readonly from: number
  /** Not included. */
  readonly to: number
}

export function parseRanges(text: string): readonly Range[] {
  if (text === '{}') return []
  const found = [...text.matchAll(/\[(\d+),(\d+)\)/g)].map(([, from, to]) => ({ from: Number(from), to: Number(to) }))
  found.sort((one, other) => one.from - other.from)
  const merged: Range[] = []
  for (const range of found) {
    const last = merged.at(-1)
    if (last && range.from <= last.to) merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, range.to) }
    else if (range.from < range.to) merged.push(range)
  }
  return merged
}

export function formatRanges(ranges: readonly Range[]): string {
  return `{${ranges.map(({ from, to }) => `[${from},${to})`).join(',')}}`
}

export function contains(ranges: readonly Range[], position: number): boolean {
  return ranges.some(({ from, to }) => position >= from && position < to)
}
