/** What a configuration means to the database: what is written down of it, and what makes it another one. */
import { createHash } from 'node:crypto'
import { DEFAULT_GROUP, type Rate, type Settings } from '../configuration/index.ts'
import type { DestinationLimits } from '../delivery/index.ts'
import type { ObserverConfig } from './config/index.ts'
import { patternsOf } from './history.ts'
import type { RegisteredObserver } from './registry-statements.ts'
import { limitedDestination } from './running-action.ts'

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

/** The subscription that all observers of a group share. */
export function subscriptionOf(group: string): string {
  return group === DEFAULT_GROUP ? DEFAULT_GROUP : `${DEFAULT_GROUP}:${group}`
}

/** What "why not" needs to know later, without secrets. */
export function toRegistered(
  { name, hash, on, entity, condition, strict, orderBy, sequential, onFailure, actions }: ObserverConfig,
  group: string,
): RegisteredObserver {
  return {
    observer: name,
    hash,
    actions: actions.map((action) => action.name),
    definition: {
      ...(group !== DEFAULT_GROUP && { group }),
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

/**
 * Every destination that is named, with its limits or none: whoever pauses one must find it, also while all that goes
 * there is done without a row. What workflows go to is only known by the name that the settings give it.
 */
export function limitsOf({ destinations }: Settings, observers: readonly ObserverConfig[]): DestinationLimits[] {
  const keys = Object.keys(destinations)
  const origins = keys.filter((key) => key.includes('://'))
  const effects = keys.filter((key) => !PROVIDER_KEYS.has(key))
  const sentTo = observers.filter((one) => !isLimited(one)).flatMap(destinationsOf)
  const all = new Set([...origins.map((origin) => `webhook ${origin}`), ...sentTo, ...effects])
  const limits = [...all].map((destination) => {
    const { concurrency, rate, burst } = destinations[keyOf(destination, destinations)] ?? UNLIMITED
    return { destination, concurrency, ...bucketOf(rate, burst) }
  })
  const own = observers.filter(isLimited).map(({ name, concurrency, rate }) => ({
    destination: limitedDestination(name),
    concurrency,
    ...bucketOf(rate, null),
  }))
  return [...limits, ...own]
}

function isLimited({ concurrency, rate }: ObserverConfig): boolean {
  return concurrency !== null || rate !== null
}

function destinationsOf({ actions }: ObserverConfig): string[] {
  return actions.flatMap(({ prepared }) => prepared?.destination ?? [])
}

const UNLIMITED = { concurrency: null, rate: null, burst: null }
/** What `[destinations]` calls where actions of a type go, besides their origin. */
const PROVIDERS: Readonly<Record<string, string>> = {
  slack: 'slack',
  email: 'smtp',
  sms: 'sms',
  push: 'push',
  search: 'search',
}
const PROVIDER_KEYS: ReadonlySet<string> = new Set(Object.values(PROVIDERS))

/** By its own name; else a destination is an action type and where it goes, and the origin says more than the provider. */
function keyOf(destination: string, destinations: Settings['destinations']): string {
  if (destination in destinations) return destination
  const [type = '', where = ''] = destination.split(' ')
  return where in destinations ? where : (PROVIDERS[type] ?? '')
}

/** `50/s` fills a bucket of fifty, fifty a second, unless the bucket has a size of its own. */
function bucketOf(rate: Rate | null, burst: number | null): Pick<DestinationLimits, 'rate' | 'burst'> {
  if (rate === null) return { rate: null, burst: null }
  return { rate: (rate.count * 1_000) / rate.perMs, burst: burst ?? rate.count }
}
