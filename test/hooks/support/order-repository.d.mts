import type pg from 'pg'

export interface Order {
  id: string
  total: number
  note?: string | null
}

export interface Orders {
  get(id: string): Promise<Order | null>
  create(order: Order): Promise<Order>
  update(id: string, changes: Partial<Order>): Promise<Order | null>
  delete(id: string): Promise<number>
  createMany(orders: Order[]): Promise<Order[]>
  updateMany(orders: Order[]): Promise<void>
  deleteMany(ids: string[]): Promise<number>
  total(): Promise<number>
}

export interface OrderRepository extends Orders {
  transaction<T>(fn: (orders: Orders, tx: pg.PoolClient) => Promise<T>): Promise<T>
}

export function orderRepository(
  pool: pg.Pool,
  options?: { afterWrite?: (what: string) => Promise<unknown> },
): OrderRepository
