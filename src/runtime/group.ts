import { AftercommitError } from '../errors.ts'
import { type Logger, silentLogger } from './logger.ts'
import { redacting } from './redacting-logger.ts'
import type { Service, ServiceState } from './service.ts'

export interface GroupOptions {
  name: string
  /** In the order in which they start: each may rely on those before it, until it has ended. */
  services: readonly Service[]
  logger?: Logger
}

/**
 * Several services as one. They start one after the other and stop in reverse. When one fails to start, the others are
 * stopped again and its error is thrown. When one fails to stop, the rest are stopped all the same. A `stop` during
 * `start` lets the service that is starting finish, and goes no further.
 */
export function createGroup({ name, services, logger: given = silentLogger }: GroupOptions): Service {
  const logger = redacting(given)
  let state: ServiceState = 'idle'
  let starting: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  let begun: Service[] = []

  const startAll = async () => {
    for (const service of services) {
      if (stopping) throw new AftercommitError('STOPPED', `${name} was stopped before all of its parts had started.`)
      // Counted before it has started: one that failed half way is stopped too.
      begun.push(service)
      await service.start()
    }
  }

  const stopAll = async (): Promise<Map<string, unknown>> => {
    const failures = new Map<string, unknown>()
    for (const service of begun.reverse()) {
      await service.stop().catch((error: unknown) => {
        failures.set(service.name, error)
        logger.error({ service: service.name, err: error }, `${service.name} did not stop cleanly`)
      })
    }
    begun = []
    return failures
  }

  const stop = async () => {
    await starting?.catch(() => {})
    state = 'stopping'
    const failures = await stopAll()
    state = 'stopped'
    if (failures.size > 0) throw stopFailed(name, failures)
  }

  const start = async () => {
    state = 'starting'
    try {
      await startAll()
      state = 'running'
    } catch (error) {
      // A stop that is under way does the stopping.
      if (!stopping) {
        await stopAll()
        state = 'stopped'
      }
      throw error
    }
  }

  return {
    name,
    get state() {
      return state
    },
    start() {
      if (stopping) {
        return Promise.reject(
          new AftercommitError('STOPPED', `${name} is being stopped, so it was not started. Await stop() first.`),
        )
      }
      if (state === 'running') return Promise.resolve()
      starting ??= start().finally(() => {
        starting = undefined
      })
      return starting
    },
    stop() {
      stopping ??= stop().finally(() => {
        stopping = undefined
      })
      return stopping
    },
  }
}

function stopFailed(name: string, failures: Map<string, unknown>): AftercommitError {
  return new AftercommitError(
    'STOP_FAILED',
    `${name} stopped, but not cleanly: ${[...failures.keys()].join(', ')} did not end as asked. ` +
      'Work they had begun may still be running; end the process to be sure.',
    { cause: new AggregateError([...failures.values()]) },
  )
}
