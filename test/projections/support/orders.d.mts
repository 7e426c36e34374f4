export interface Order {
  sum: number
  seen: string[]
}

export function applyOrder(state: Order | null, event: { id: string; type: string; payload: unknown }): Order | null
