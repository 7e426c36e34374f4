import type { Clock } from './clock.ts'
import type { Health } from './health.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './metrics.ts'

/** What every part of an instance is handed. */
export interface PartOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Registry
  readonly health: Health
}
