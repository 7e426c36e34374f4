/** How many rows the next page asks for, so that a page of large events stays as small in memory as one of small events. */
export function nextPageSize(rows: number, size: number, { most = 1_000, maxSize = 8_000_000 } = {}): number {
  if (rows === 0) return most
  return Math.max(10, Math.min(most, Math.floor(maxSize / (size / rows))))
}
