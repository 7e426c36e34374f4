import { describe, expect, it } from 'vitest'
import { describeSubscriptions, memoryBus, type SubscriptionsUnderTest } from '../../src/testing/index.ts'

describeSubscriptions('subscriptions in memory', async ({ events }) => underTest(memoryBus({ events })), {
  describe,
  it,
  expect,
})

function underTest(bus: ReturnType<typeof memoryBus>): SubscriptionsUnderTest {
  return {
    emit: bus.emit,
    transaction: (fn) => bus.transaction(fn),
    subscribe: (subscription) => bus.subscribe(subscription),
    subscriptions: bus.subscriptions,
    deadLetters: bus.deadLetters,
    start: async () => void (await bus.drain()),
    async restart() {
      for (const { id } of await bus.subscriptions.list()) await bus.subscriptions.get(id).stop()
      return underTest(bus)
    },
    stop: async () => {},
  }
}
