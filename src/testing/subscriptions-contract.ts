/**
 * What every implementation of subscriptions promises, as tests that any of them can run: the in-memory twin and Postgres
 * do, and a wrapper of yours can. It needs no particular test runner: give it `describe`, `it` and `expect`.
 */
import type { DeadLetters } from '../dead-letters/index.ts'
import type { EventDefinitions } from '../events/index.ts'
import type { Emit } from '../index.ts'
import type { SubscriptionHandle, SubscriptionOptions, Subscriptions } from '../subscriptions/index.ts'
import { deliveryScenarios } from './contract-delivery.ts'
import { emittingScenarios } from './contract-emitting.ts'
import { contractEvents } from './contract-events.ts'
import { failureScenarios } from './contract-failure.ts'
import { parkingScenarios } from './contract-parking.ts'

/** Who calls: one scenario, from `create` to `stop`. Nothing is shared between scenarios, so they may run side by side. */
export interface SubscriptionsUnderTest {
  /** Appends in a transaction of its own. */
  readonly emit: Emit<EventDefinitions>
  transaction<T>(fn: (tx: { readonly emit: Emit<EventDefinitions> }) => Promise<T>): Promise<T>
  subscribe(subscription: SubscriptionOptions): SubscriptionHandle
  readonly subscriptions: Subscriptions
  readonly deadLetters: DeadLetters
  /** Called once, when subscriptions are registered: events are handled from now on. */
  start(): Promise<void>
  /** Ends what runs and comes back as a new process would: the same history, no subscriptions. */
  restart(): Promise<SubscriptionsUnderTest>
  stop(): Promise<void>
}

/** The part of vitest, Jest and the like that is used; with node:test, wrap `assert.deepStrictEqual`. */
export interface TestFramework {
  describe(name: string, body: () => void): void
  it(name: string, body: () => Promise<void>): void
  expect(actual: unknown): { toEqual(expected: unknown): void }
}

export interface Stage {
  readonly bus: SubscriptionsUnderTest
  readonly expect: TestFramework['expect']
  /** Looks again and again until `look` answers true. */
  until(look: () => boolean | Promise<boolean>): Promise<void>
}

/** A sentence that must hold, and how to see that it does. */
export type Scenario = readonly [title: string, play: (stage: Stage) => Promise<void>]

/** `create` gives an implementation with an empty log that knows `events`, its streams included. */
export function describeSubscriptions(
  name: string,
  create: (options: { events: EventDefinitions }) => Promise<SubscriptionsUnderTest>,
  { describe, it, expect }: TestFramework,
): void {
  const topics = {
    emitting: emittingScenarios,
    delivery: deliveryScenarios,
    failure: failureScenarios,
    parking: parkingScenarios,
  }
  describe(name, () => {
    for (const [topic, scenarios] of Object.entries(topics)) {
      describe(topic, () => {
        for (const [title, play] of scenarios) {
          it(title, async () => {
            const bus = await create({ events: contractEvents })
            try {
              await play({ bus, expect, until })
            } finally {
              await bus.stop()
            }
          })
        }
      })
    }
  })
}

/** Ends a scenario that cannot succeed; nothing is inferred from how long anything took. */
const DEADLINE_MS = 20_000
const EVERY_MS = 10

async function until(look: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + DEADLINE_MS
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`It did not happen within ${DEADLINE_MS} ms: ${look}`)
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
}
