/**
 * The bytes after which the database ends a page, whatever number of rows was asked for: the event that reaches this sum is
 * the last of its page. Readers of a process with little memory ask for less (read-budget.ts).
 */
export const PAGE_BYTES = 8_000_000

/** Whether a page may have ended before the rows that were asked for: there may be more behind its last row. */
export function isFull(
  rows: readonly { readonly bytes: number | string }[],
  limit: number,
  maxBytes = PAGE_BYTES,
): boolean {
  if (rows.length >= limit) return true
  let bytes = 0
  for (const row of rows) bytes += Number(row.bytes)
  return bytes >= maxBytes
}

/** How many rows the next page asks for, so that a page of large events stays as small in memory as one of small events. */
export function nextPageSize(rows: number, size: number, { most = 1_000, maxSize = PAGE_BYTES } = {}): number {
  if (rows === 0) return most
  return Math.max(10, Math.min(most, Math.floor(maxSize / (size / rows))))
}
