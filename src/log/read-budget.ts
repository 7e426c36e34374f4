/**
 * How many bytes of events the readers of this process may hold together. The ring of recent events counts once, since all
 * readers share it. The rest is divided among those that read pages from the database: each holds one page and has the next
 * one on its way. A page always holds one event, so no event is too large for a budget.
 */
import { getHeapStatistics } from 'node:v8'
import type { Clock } from '../runtime/index.ts'
import { PAGE_BYTES } from './page-size.ts'

export interface ReadBudgetStatus {
  /** For all readers of the process together. */
  readonly bytes: number
  /** Readers that have read pages in the last ten minutes. */
  readonly readers: number
  /** The size that a page of one of them may reach. */
  readonly pageBytes: number
}

export interface ReadBudget {
  readonly ringBytes: number
  /** What the page of a reader may weigh now. Reads without a name count as one reader. */
  pageBytes(reader?: object): number
  status(): ReadBudgetStatus
}

/** Text of JSON takes up to three times its size while it is read, and handlers need the most of the heap. */
const SHARE_OF_HEAP = 0.2
const RING_BYTES = 16_000_000
/** The first page of a reader: by its second one all readers of a start are known. */
const FIRST_PAGE_BYTES = 250_000
const REMEMBERED_MS = 600_000

export function createReadBudget(
  clock: Pick<Clock, 'monotonic'>,
  bytes = Math.floor(getHeapStatistics().heap_size_limit * SHARE_OF_HEAP),
): ReadBudget {
  const readers = new Map<object, number>()
  const ringBytes = Math.min(RING_BYTES, Math.floor(bytes / 4))
  const others = {}

  function forgetOld(): void {
    const since = clock.monotonic() - REMEMBERED_MS
    for (const [reader, at] of readers) if (at < since) readers.delete(reader)
  }

  const share = () => Math.min(PAGE_BYTES, Math.floor((bytes - ringBytes) / (2 * Math.max(1, readers.size))))

  return {
    ringBytes,
    pageBytes(reader = others) {
      const isNew = !readers.has(reader)
      readers.set(reader, clock.monotonic())
      if (!isNew) return share()
      forgetOld()
      return Math.min(share(), FIRST_PAGE_BYTES)
    },
    status() {
      forgetOld()
      return { bytes, readers: readers.size, pageBytes: share() }
    },
  }
}
