/** A broadcaster for tests of code that listens to one: no log, no database, and it remembers what was sent. */
import { type Broadcaster, createBroadcaster, type SystemEvent, toSystemEvent } from '../hooks/index.ts'
import { type TestEventInput, testEvent } from './test-event.ts'

export interface TestBroadcaster extends Broadcaster {
  /** Everything sent so far, whether anybody listened or not. */
  readonly sent: readonly SystemEvent[]
  /** Sends what the log would have sent for this event: `sendEvent('order.deleted', { aggregate, previous })`. */
  sendEvent(type: string, input?: TestEventInput): number
}

export function testBroadcaster(options: { ring?: number } = {}): TestBroadcaster {
  const broadcaster = createBroadcaster(options)
  const sent: SystemEvent[] = []
  const send = (event: SystemEvent) => {
    sent.push(event)
    return broadcaster.send(event)
  }
  return {
    sent,
    send,
    sendEvent: (type, input = {}) =>
      send(toSystemEvent(testEvent(type, { position: BigInt(sent.length + 1), ...input }))),
    subscribe: (reader) => broadcaster.subscribe(reader),
    close: () => broadcaster.close(),
    get subscriberCount() {
      return broadcaster.subscriberCount
    },
  }
}
