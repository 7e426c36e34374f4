/** The result of one attempt with some of the items. */
export type BisectStep<Item> =
  | { readonly kind: 'done' }
  /** One of these, at least two, may be the culprit: each half is attempted by itself. */
  | { readonly kind: 'halve'; readonly items: readonly Item[] }
  /** Nothing more is attempted. `left`: items of this attempt that have not begun. */
  | { readonly kind: 'stop'; readonly left: readonly Item[] }

/**
 * Attempts many items at once and finds the culprit by halving: items that fail together are attempted in halves until
 * the one that fails is alone. Keeps the order. Returns the items that have not begun because an attempt said stop.
 */
export async function bisect<Item>(
  items: readonly Item[],
  attempt: (some: readonly Item[]) => Promise<BisectStep<Item>>,
): Promise<readonly Item[]> {
  const waiting = [items]
  for (let some = waiting.pop(); some !== undefined; some = waiting.pop()) {
    const step = await attempt(some)
    if (step.kind === 'stop') return [...step.left, ...waiting.reverse().flat()]
    if (step.kind === 'done') continue
    const middle = step.items.length >>> 1
    waiting.push(step.items.slice(middle), step.items.slice(0, middle))
  }
  return []
}
