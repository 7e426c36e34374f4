import { describe, expect, it } from 'vitest'
import { memorySink, type Sink, SinkUnavailable } from '../../src/index.ts'
import { describeSink, type SinkUnderTest } from '../../src/testing/index.ts'

describeSink('the sink in memory', async () => underTest(false), { describe, it, expect })
describeSink('the sink in memory that tells duplicates', async () => underTest(true), { describe, it, expect })

describe('the suite itself', () => {
  it('passes a sink that keeps its promises', async () => {
    expect(await failures(() => underTest(false))).toEqual([])
  })

  it('finds a sink that loses, mixes up or changes messages, and one that never says no', async () => {
    const losing = await failures(() => spoilt((messages) => messages.slice(1)))
    expect(losing).toContain('has accepted every message of a call when the call resolves')
    const mixing = await failures(() => spoilt((messages) => [...messages].reverse()))
    expect(mixing).toEqual([
      'keeps the order within a call and from call to call',
      'takes messages again that it has accepted before',
      'rejects while the bus is away, and takes the same messages in order when it is back',
    ])
    const changing = await failures(() =>
      spoilt((messages) =>
        messages.map((each) => ({ ...each, cloudEvent: each.cloudEvent.trim().replace('🙂', '?') })),
      ),
    )
    expect(changing).toEqual(['carries any text unchanged'])
    const doubling = await failures(() => spoilt((messages) => messages, true))
    expect(doubling).toEqual(['takes messages again that it has accepted before'])
    const silent = await failures(() => {
      const under = underTest(false)
      return { ...under, outage: async () => async () => {} }
    })
    expect(silent).toEqual(['rejects while the bus is away, and takes the same messages in order when it is back'])
  })
})

function underTest(deduplicating: boolean): SinkUnderTest {
  const sink = memorySink({ deduplicating })
  return {
    sink,
    readBack: async () => sink.messages,
    async outage() {
      sink.failNext(Number.POSITIVE_INFINITY, new SinkUnavailable('away'))
      return async () => sink.failNext(0)
    },
    stop: async () => {},
  }
}

/** A sink that does something to what it is given, or claims to tell duplicates and does not. */
function spoilt(
  spoil: (messages: Parameters<Sink['publish']>[0]) => Parameters<Sink['publish']>[0],
  lies = false,
): SinkUnderTest {
  const { sink, ...rest } = underTest(false)
  const features = { ...sink.features, deduplicating: lies }
  return {
    ...rest,
    sink: { name: 'spoilt', features, publish: (messages, context) => sink.publish(spoil(messages), context) },
  }
}

/** The titles of the scenarios that fail. */
async function failures(create: () => SinkUnderTest): Promise<string[]> {
  const bodies: [string, () => Promise<void>][] = []
  const collect = (title: string, body: () => Promise<void>) => void bodies.push([title, body])
  describeSink('collected', async () => create(), { describe: (_, body) => body(), it: collect, expect })
  const failed: string[] = []
  for (const [title, body] of bodies) await body().catch(() => failed.push(title))
  return failed
}
