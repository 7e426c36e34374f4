import { describe, expect, it } from 'vitest'
import { createAftercommit, type Emit, type EventDefinitions } from '../../src/index.ts'
import { describeSubscriptions, type SubscriptionsUnderTest } from '../../src/testing/index.ts'
import { testDatabase } from '../support/database.ts'

describeSubscriptions(
  'subscriptions on Postgres',
  async ({ events }) => {
    const { url } = await testDatabase({ migrated: true })
    const bus = underTest(url, events)
    await bus.migrate()
    return bus
  },
  { describe, it, expect },
)

function underTest(url: string, events: EventDefinitions): SubscriptionsUnderTest & { migrate(): Promise<unknown> } {
  const ac = createAftercommit({ database: url, events, poolSize: 4 })
  const emit = (first: never, event: never) => ac.transaction((tx) => tx.emit(first, event))
  return {
    emit: emit as Emit<EventDefinitions>,
    transaction: (fn) => ac.transaction(fn),
    subscribe: (subscription) => ac.subscribe(subscription as never),
    subscriptions: ac.subscriptions,
    deadLetters: ac.deadLetters,
    start: () => ac.start(),
    async restart() {
      await ac.stop()
      return underTest(url, events)
    },
    stop: () => ac.stop(),
    migrate: () => ac.migrate(),
  }
}
