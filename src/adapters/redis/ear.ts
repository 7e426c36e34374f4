/**
 * Listens to one channel for as long as it takes. Its states, failures first:
 *
 *   away       not reachable, or the connection ended: tried again after a growing delay. What was published meanwhile
 *              is lost to it; `onListening` is how the listener learns that it must look elsewhere
 *   listening  subscribed, and the server answers
 */
import { type Clock, createThrottledLog, type Logger, reconnectDelay } from '../../runtime/index.ts'
import { type Connection, type ConnectionOptions, connect } from './connection.ts'
import { type RedisError, toRedisError } from './redis-error.ts'

export interface EarOptions extends ConnectionOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly channel: string
  readonly onMessage: (text: string) => void
  /** Subscribed. Until it resolves the connection does not count as made. */
  readonly onListening: () => Promise<void> | void
  readonly onAway: (error: RedisError) => void
}

export interface Ear {
  /** Resolves when it listens, or has failed for the first time; it goes on either way. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function createEar(options: EarOptions): Ear {
  const { clock, logger, channel, onMessage, onListening, onAway } = options
  const logRepeatedly = createThrottledLog({ logger, clock })
  let stopping = new AbortController()
  let connection: Connection | undefined
  let running: Promise<void> = Promise.resolve()

  async function listen(): Promise<Connection> {
    const subscriber = await connect(options)
    try {
      await subscriber.call((client) => client.subscribe(channel, onMessage))
      await onListening()
      return subscriber
    } catch (error) {
      subscriber.end()
      throw error
    }
  }

  async function run(signal: AbortSignal, settled: () => void): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        connection = await listen()
        failures = 0
        settled()
        if (signal.aborted) connection.end()
        throw await connection.ended
      } catch (error) {
        if (signal.aborted) return
        failures++
        away(error)
        settled()
        await clock.sleep(reconnectDelay(failures), signal).catch(() => {})
      }
    }
  }

  function away(error: unknown): void {
    const reason = toRedisError(error)
    logRepeatedly('warn', reason.reason, { channel, reason: reason.reason }, 'redis is away; it is tried again')
    onAway(reason)
  }

  return {
    start() {
      stopping = new AbortController()
      return new Promise((settled) => {
        running = run(stopping.signal, settled).finally(settled)
      })
    },
    async stop() {
      stopping.abort()
      connection?.end()
      await running
    },
  }
}
