/**
 * Many callers share a write: while one write is under way, items that come meanwhile wait and go with the next one.
 * Under load few writes carry many items; on a quiet system an item is written at once.
 */
export interface BatcherOptions<Item, Answer> {
  /** Writes items in the order in which they came. Answers one by one, in that order. A rejection is the answer of all. */
  readonly write: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** How many of the waiting items the next write takes, at least one. Default: all. */
  readonly take?: (waiting: readonly Item[]) => number
  /** Writes under way at the same time. Default: 1. */
  readonly writers?: number
}

/** Resolves with the answer for this item when its write is over. */
export type Batcher<Item, Answer> = (item: Item) => Promise<Answer>

interface Waiting<Answer> {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export function createBatcher<Item, Answer>({
  write,
  take = ({ length }) => length,
  writers = 1,
}: BatcherOptions<Item, Answer>): Batcher<Item, Answer> {
  const items: Item[] = []
  const callers: Waiting<Answer>[] = []
  let underWay = 0

  async function writeAll(): Promise<void> {
    underWay++
    for (;;) {
      // One turn of the event loop: items that come together are written together, also items of callers just answered.
      await new Promise(setImmediate)
      if (items.length === 0) break
      const count = take(items)
      await settle(items.splice(0, count), callers.splice(0, count))
    }
    underWay--
  }

  async function settle(some: readonly Item[], theirs: readonly Waiting<Answer>[]): Promise<void> {
    try {
      const answers = await write(some)
      for (const [n, { resolve }] of theirs.entries()) resolve(answers[n]!)
    } catch (error) {
      for (const { reject } of theirs) reject(error)
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      items.push(item)
      callers.push({ resolve, reject })
      if (underWay < writers) void writeAll()
    })
}
