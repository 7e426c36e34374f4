/**
 * One connection to Redis. It does not come back by itself: whoever holds it hears of its end and decides. It keeps no
 * queue for a server that is away, and a server that stands still is noticed, because it owes an answer to a ping.
 */
import { AftercommitError } from '../../errors.ts'
import { type Clock, withDeadline } from '../../runtime/index.ts'
import { RedisError, toRedisError } from './redis-error.ts'

export type Client = ReturnType<typeof makeClient>

export interface ConnectionOptions {
  readonly url: string
  readonly timeoutMs: number
  readonly clock: Clock
}

export interface Connection {
  readonly client: Client
  /** Resolves with the reason when it is over, whoever ended it. */
  readonly ended: Promise<RedisError>
  /** One exchange within the time for a call. One that is late ends the connection: nobody can tell what it still does. */
  call<T>(exchange: (client: Client) => Promise<T>): Promise<T>
  end(): void
}

/** Throws RedisError when it is not there within the time. */
export async function connect({ url, timeoutMs, clock }: ConnectionOptions): Promise<Connection> {
  const client = makeClient(await loadClient(), url, timeoutMs)
  let tellEnd: (reason: RedisError) => void = () => {}
  const ended = new Promise<RedisError>((resolve) => {
    tellEnd = resolve
  })
  client.on('error', (error) => tellEnd(toRedisError(error)))
  client.on('end', () => tellEnd(new RedisError('CLOSED')))

  function end(): void {
    // Its own word for the end would come late or never.
    tellEnd(new RedisError('CLOSED'))
    try {
      client.destroy()
    } catch {
      // It was over already.
    }
  }

  const late = () => {
    end()
    return new RedisError('TIMED_OUT')
  }
  const within = <T>(work: Promise<T>) => withDeadline(work, timeoutMs, clock, late)
  try {
    await within(client.connect())
  } catch (error) {
    end()
    throw toRedisError(error)
  }
  return {
    client,
    ended,
    async call(exchange) {
      try {
        return await within(exchange(client))
      } catch (error) {
        throw toRedisError(error)
      }
    },
    end,
  }
}

function makeClient({ createClient }: typeof import('@redis/client'), url: string, timeoutMs: number) {
  return createClient({
    url,
    RESP: 2,
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    pingInterval: Math.ceil(timeoutMs / 2),
    socket: { connectTimeout: timeoutMs, socketTimeout: timeoutMs * 2, reconnectStrategy: false },
  })
}

/** An optional peer: asked for by those who use Redis, and loaded with the first connection. */
export async function loadClient(): Promise<typeof import('@redis/client')> {
  try {
    return await import('@redis/client')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new AftercommitError(
      'PEER_MISSING',
      'Redis is configured, and the package "@redis/client" is not installed, so nothing was connected. ' +
        'Install it: npm install @redis/client',
    )
  }
}
