/**
 * Connections for calls, made when they are needed. A call takes one that is idle, else another one is opened up to the
 * limit, else it goes behind the shortest line. A connection that ends is forgotten, and the next call makes another:
 * nothing happens in the background, and nothing waits for a server that is away.
 */
import { type Client, type Connection, type ConnectionOptions, connect } from './connection.ts'
import { RedisError } from './redis-error.ts'

export interface Pool {
  /** Throws RedisError when Redis does not do it in time. */
  call<T>(exchange: (client: Client) => Promise<T>): Promise<T>
  close(): void
}

interface Lane {
  readonly opening: Promise<Connection>
  calls: number
}

export function createPool(options: ConnectionOptions & { readonly poolSize: number }): Pool {
  const lanes = new Set<Lane>()
  let closed = false

  function open(): Lane {
    const lane: Lane = { opening: connect(options), calls: 0 }
    lanes.add(lane)
    lane.opening.then(
      (connection) => connection.ended.then(() => lanes.delete(lane)),
      () => lanes.delete(lane),
    )
    return lane
  }

  function choose(): Lane {
    const [shortest] = [...lanes].sort((a, b) => a.calls - b.calls)
    return shortest === undefined || (shortest.calls > 0 && lanes.size < options.poolSize) ? open() : shortest
  }

  return {
    async call(exchange) {
      if (closed) throw new RedisError('CLOSED')
      const lane = choose()
      lane.calls++
      try {
        const connection = await lane.opening
        return await connection.call(exchange)
      } finally {
        lane.calls--
      }
    },
    close() {
      closed = true
      for (const { opening } of lanes) opening.then((connection) => connection.end()).catch(() => {})
    },
  }
}
