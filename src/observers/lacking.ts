/** What actions need from the database and do not find there: a function that is missing or not allowed, for example. */
import type { Finding } from '../postgres/index.ts'
import type { ObserverConfig } from './config/index.ts'

export interface Lacking {
  readonly observer: string
  readonly action: string
  readonly reason: string
}

/** Asks one action after the other. Throws what the database throws when it cannot be asked. */
export async function findLacking(observers: readonly ObserverConfig[]): Promise<Lacking[]> {
  const found: Lacking[] = []
  for (const { name: observer, actions, enabled } of observers) {
    if (!enabled) continue
    for (const { name: action, prepared } of actions) {
      const reason = await prepared?.lacks?.()
      if (reason !== undefined) found.push({ observer, action, reason })
    }
  }
  return found
}

export async function diagnoseLacking(observers: readonly ObserverConfig[]): Promise<Finding[]> {
  return (await findLacking(observers)).map(({ observer, action, reason }) => ({
    level: 'problem',
    check: 'actions',
    message: `${observer}/${action}: ${reason}`,
    fix: 'Until then each of its events becomes a dead letter',
  }))
}
