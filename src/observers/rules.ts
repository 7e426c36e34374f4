/** What a configuration means to the database: what is written down of it, and what makes it another one. */
import { createHash } from 'node:crypto'
import type { Rate, Settings } from '../configuration/index.ts'
import type { DestinationLimits } from '../delivery/index.ts'
import { limitedDestination } from './acting.ts'
import type { ObserverConfig } from './config/index.ts'
import { patternsOf } from './history.ts'
import type { RegisteredObserver } from './registry-statements.ts'

/** What their subscription reads. */
export function readBy(observers: readonly ObserverConfig[]): readonly string[] {
  const patterns = patternsOf(observers) ?? ['*']
  return patterns.length === 0 ? ['aftercommit.nothing'] : patterns
}

/** Another one stands for other rules. */
export function hashOf(observers: readonly ObserverConfig[]): string {
  const text = JSON.stringify(observers.map(({ name, hash }) => [name, hash]).sort())
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** What "why not" needs to know later, without secrets. */
export function toRegistered({
  name,
  hash,
  on,
  entity,
  condition,
  strict,
  orderBy,
  sequential,
  onFailure,
  actions,
}: ObserverConfig): RegisteredObserver {
  return {
    observer: name,
    hash,
    actions: actions.map((action) => action.name),
    definition: {
      on,
      entity,
      condition,
      strict,
      order_by: orderBy,
      sequential,
      on_failure: onFailure,
      actions: actions.map(({ name: action, type }) => ({ name: action, type })),
    },
  }
}

export function limitsOf({ destinations }: Settings, observers: readonly ObserverConfig[]): DestinationLimits[] {
  const sentTo = observers.flatMap(({ actions }) => actions.map(({ prepared }) => prepared?.destination ?? ''))
  const origins = Object.keys(destinations).filter((key) => key.includes('://'))
  const all = new Set([...origins.map((origin) => `webhook ${origin}`), ...sentTo])
  const limits = [...all].flatMap((destination) => {
    const { concurrency, rate } = destinations[keyOf(destination, destinations)] ?? UNLIMITED
    return concurrency === null && rate === null ? [] : [{ destination, concurrency, ...bucketOf(rate) }]
  })
  const own = observers
    .filter(({ concurrency, rate }) => concurrency !== null || rate !== null)
    .map(({ name, concurrency, rate }) => ({
      destination: limitedDestination(name),
      concurrency,
      ...bucketOf(rate),
    }))
  return [...limits, ...own]
}

const UNLIMITED = { concurrency: null, rate: null }
/** What `[destinations]` calls where actions of a type go, besides their origin. */
const PROVIDERS: Readonly<Record<string, string>> = {
  slack: 'slack',
  email: 'smtp',
  sms: 'sms',
  push: 'push',
  search: 'search',
}

/** A destination is an action type and where it goes. The origin says more than the provider. */
function keyOf(destination: string, destinations: Settings['destinations']): string {
  const [type = '', where = ''] = destination.split(' ')
  return where in destinations ? where : (PROVIDERS[type] ?? '')
}

/** `50/s` fills a bucket of fifty, fifty a second. */
function bucketOf(rate: Rate | null): Pick<DestinationLimits, 'rate' | 'burst'> {
  return rate === null ? { rate: null, burst: null } : { rate: (rate.count * 1_000) / rate.perMs, burst: rate.count }
}
