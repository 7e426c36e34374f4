/** Upkeep of what subscriptions leave behind: processed keys and records of relays. Any number of processes may do it. */
import { createLoop, type PartOptions, type Service } from '../runtime/index.ts'

export interface RetentionOptions extends PartOptions {
  readonly prune: () => Promise<void>
}

const EVERY_MS = 600_000

export function createRetention({ clock, logger, metrics, health, prune }: RetentionOptions): Service {
  return createLoop({
    name: 'subscription upkeep',
    clock,
    logger,
    metrics,
    health,
    async run({ wait }) {
      for (;;) {
        await wait(EVERY_MS * (0.75 + Math.random() / 2))
        await prune()
      }
    },
  })
}
