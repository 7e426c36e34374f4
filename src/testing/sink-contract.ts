/**
 * What every sink promises to a relay, as tests that any of them can run. They adapt to what the sink declares: order is
 * asked of an ordered one, one copy of a deduplicating one, survival of a persistent one.
 */
import type { Sink, SinkMessage } from '../index.ts'
import type { TestFramework } from './subscriptions-contract.ts'

/** Who calls: one scenario, from `create` to `stop`. The bus is empty at first, or `readBack` hides what was there. */
export interface SinkUnderTest {
  readonly sink: Sink
  /** What a reader of the bus sees of all that was accepted so far, in the order it sees it. */
  readBack(): Promise<readonly ReadMessage[]>
  /** Makes the bus unreachable until the function that this gives is called. Without it no outage is played. */
  outage?(): Promise<() => Promise<void>>
  /** Restarts the bus; for persistent sinks. Without it no restart is played. */
  restart?(): Promise<void>
  stop(): Promise<void>
}

/** What must arrive of a message. */
export type ReadMessage = Pick<SinkMessage, 'id' | 'key' | 'cloudEvent'>

export function describeSink(name: string, create: () => Promise<SinkUnderTest>, framework: TestFramework): void {
  const { describe, it, expect } = framework
  describe(name, () => {
    for (const [title, play] of SCENARIOS) {
      it(title, async () => {
        const under = await create()
        try {
          await play(under, expect)
        } finally {
          await under.stop()
        }
      })
    }
  })
}

type Play = (under: SinkUnderTest, expect: TestFramework['expect']) => Promise<void>

const SCENARIOS: readonly (readonly [title: string, play: Play])[] = [
  [
    'says what it is called and what it can do',
    async ({ sink }, expect) => {
      expect(sink.name.length > 0).toEqual(true)
      const { ordered, persistent, deduplicating } = sink.features
      expect([ordered, persistent, deduplicating].map((feature) => typeof feature)).toEqual(Array(3).fill('boolean'))
    },
  ],
  [
    'has accepted every message of a call when the call resolves',
    async (under, expect) => {
      const messages = batch(1, 20)
      await publish(under.sink, messages)
      expect(byId(await under.readBack())).toEqual(byId(messages))
    },
  ],
  [
    'keeps the order within a call and from call to call',
    async (under, expect) => {
      const messages = [...batch(1, 50), ...batch(51, 51), ...batch(52, 100)]
      await publish(under.sink, messages.slice(0, 50))
      await publish(under.sink, messages.slice(50, 51))
      await publish(under.sink, messages.slice(51))
      const read = await under.readBack()
      if (under.sink.features.ordered) expect(read.map(({ id }) => id)).toEqual(messages.map(({ id }) => id))
      else expect(byId(read)).toEqual(byId(messages))
    },
  ],
  [
    'takes messages again that it has accepted before',
    async (under, expect) => {
      const messages = batch(1, 10)
      await publish(under.sink, messages.slice(0, 6))
      await publish(under.sink, messages)
      const read = await under.readBack()
      expect(byId(read)).toEqual(byId(messages))
      if (under.sink.features.deduplicating) expect(read.length).toEqual(10)
      if (under.sink.features.ordered) expect(firstOfEach(read)).toEqual(messages.map(({ id }) => id))
    },
  ],
  [
    'carries any text unchanged',
    async (under, expect) => {
      const texts = ['"quoted" \\ and \n broken', 'Grüße, 漢字, 🙂', 'x'.repeat(100_000)]
      const messages = texts.map((text, i) => message(i + 1, text))
      await publish(under.sink, messages)
      expect(byId(await under.readBack())).toEqual(byId(messages))
    },
  ],
  [
    'ends a call whose signal has fired, and takes the same messages afterwards',
    async (under, expect) => {
      const messages = batch(1, 5)
      const signal = AbortSignal.abort(new Error('too late'))
      await under.sink.publish(messages, { signal }).catch(() => {})
      await publish(under.sink, messages)
      expect(byId(await under.readBack())).toEqual(byId(messages))
    },
  ],
  [
    'rejects while the bus is away, and takes the same messages in order when it is back',
    async (under, expect) => {
      if (under.outage === undefined) return
      const messages = batch(1, 10)
      await publish(under.sink, messages.slice(0, 5))
      const end = await under.outage()
      const outcome = await publish(under.sink, messages.slice(5)).then(
        () => 'accepted',
        () => 'rejected',
      )
      await end()
      expect(outcome).toEqual('rejected')
      await eventually(() => publish(under.sink, messages.slice(5)))
      const read = await under.readBack()
      expect(byId(read)).toEqual(byId(messages))
      if (under.sink.features.ordered) expect(firstOfEach(read)).toEqual(messages.map(({ id }) => id))
    },
  ],
  [
    'still has what it accepted after a restart of the bus, if it says so',
    async (under, expect) => {
      if (!under.sink.features.persistent || under.restart === undefined) return
      const messages = batch(1, 10)
      await publish(under.sink, messages)
      await under.restart()
      expect(byId(await under.readBack())).toEqual(byId(messages))
    },
  ],
  [
    'can be closed after its last call',
    async ({ sink }, expect) => {
      await publish(sink, batch(1, 1))
      const outcome = await Promise.resolve(sink.close?.()).then(() => 'closed')
      expect(outcome).toEqual('closed')
    },
  ],
]

function publish(sink: Sink, messages: readonly SinkMessage[]): Promise<void> {
  return sink.publish(messages, { signal: new AbortController().signal })
}

function batch(from: number, to: number): SinkMessage[] {
  return Array.from({ length: to - from + 1 }, (_, i) => message(from + i))
}

function message(n: number, text = `message ${n}`): SinkMessage {
  const [id, key] = [`contract-${n}`, `thing/${n % 3}`]
  const cloudEvent = {
    specversion: '1.0',
    id,
    source: 'urn:contract',
    type: 'thing.changed',
    position: String(n),
    data: { text },
  }
  return {
    id,
    type: 'thing.changed',
    key,
    position: BigInt(n),
    cloudEvent: JSON.stringify(cloudEvent),
    headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
  }
}

/** One entry per id, however often it was seen; two that differ show as a difference. */
function byId(messages: readonly ReadMessage[]): unknown[] {
  const seen = new Map<string, ReadMessage>()
  for (const { id, key, cloudEvent } of messages) {
    const known = seen.get(id)
    const differs = known !== undefined && (known.key !== key || known.cloudEvent !== cloudEvent)
    seen.set(differs ? `${id}, another` : id, { id, key, cloudEvent })
  }
  return [...seen].sort(([a], [b]) => (a < b ? -1 : 1))
}

function firstOfEach(messages: readonly ReadMessage[]): string[] {
  return [...new Set(messages.map(({ id }) => id))]
}

/** A bus that was away needs a moment to be found again. */
async function eventually(work: () => Promise<void>, tries = 100): Promise<void> {
  for (let left = tries; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (left <= 1) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
