/**
 * A fold in which order, omissions and repetitions all show: a list of amounts whose sum is kept, closed and gone by the
 * last event of an order.
 *
 * @param {{ sum: number, seen: string[] } | null} state
 * @param {{ id: string, type: string, payload: unknown }} event
 * @returns {{ sum: number, seen: string[] } | null}
 */
export function applyOrder(state, event) {
  if (event.type === 'order.closed') return null
  const { amount } = /** @type {{ amount: number }} */ (event.payload)
  const { sum, seen } = state ?? { sum: 0, seen: [] }
  return { sum: sum + amount, seen: [...seen, event.id] }
}
