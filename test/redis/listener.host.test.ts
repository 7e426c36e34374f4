/** Relay and listener against a real Redis, without a database. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Gap, type RedisEvent, redisListener, redisRelay } from '../../src/adapters/redis/index.ts'
import { eventually } from '../support/eventually.ts'
import { hasRedis, noRedis, type RedisServer, startRedis } from '../support/redis.ts'
import { event, type FakeHost, fakeHost } from './support.ts'

const CHANNEL = 'aftercommit:shop:events'
/** A server that is gone is noticed at once; one that is slow, on a busy machine, is not away. */
const PATIENT = '20s'

async function openRelay(redis: RedisServer, process: string): Promise<FakeHost> {
  const relay = redisRelay({ url: redis.url, timeout: PATIENT })
  const host = fakeHost(process)
  await relay.start(host)
  onTestFinished(() => relay.stop())
  return host
}

interface Heard {
  readonly told: string[]
  readonly ids: () => string[]
}

async function openListener(
  url: string,
  behave: { onEvent?: (event: RedisEvent) => void; onGap?: (gap: Gap) => void } = {},
) {
  const told: string[] = []
  const listener = redisListener({
    url,
    channel: CHANNEL,
    timeout: PATIENT,
    onEvent(heard) {
      told.push(`event ${heard.id}`)
      behave.onEvent?.(heard)
    },
    onGap(gap) {
      told.push(`gap ${gap.from} to ${gap.to}`)
      behave.onGap?.(gap)
    },
  })
  await listener.start()
  onTestFinished(() => listener.stop())
  const heard: Heard = { told, ids: () => told.filter((line) => line.startsWith('event')).map((line) => line.slice(6)) }
  return { listener, ...heard }
}

describe.runIf(hasRedis())('a relay', () => {
  it('looks at the log for every message, whatever it says, and for every connection made anew', async () => {
    const redis = await startRedis()
    const [a, b] = [await openRelay(redis, 'a'), await openRelay(redis, 'b')]
    // Read already, says the place: a message is no reason to believe so.
    b.position = 100n
    const stranger = await redis.client()
    const looksAfter = async (what: () => Promise<unknown>) => {
      const before = b.nudges
      await what()
      await eventually(() => b.nudges > before)
    }
    await looksAfter(() => a.publisher!.publish([event(1)]))
    await looksAfter(() => a.publisher!.publish([event(1)]))
    for (const text of ['', 'no JSON', '{"v":1}', 'x'.repeat(100_000)]) {
      await looksAfter(() => stranger.publish(CHANNEL, text))
    }
    await looksAfter(() => stranger.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']))
    expect(a.publisher!.id).toBe(`redis:${CHANNEL}`)
  })

  it('does not publish to a Redis that is away: it rejects, and says so in health without the password', async () => {
    const redis = await startRedis({ password: 'canary-4711' })
    const host = await openRelay(redis, 'a')
    await host.publisher!.publish([event(1)])
    expect(host.health.check().ready).toBe(true)
    await redis.kill()
    await expect(host.publisher!.publish([event(2)])).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    await eventually(() => !host.health.check().ready)
    await redis.start()
    await eventually(() => host.publisher!.publish([event(2)]).then(() => true))
    await eventually(() => host.health.check().ready)
    expect(JSON.stringify([host.lines, host.health.check()])).not.toContain('canary')
  })

  it('tells a wrong password by a word', async () => {
    const { url } = await startRedis({ password: 'right' })
    const relay = redisRelay({ url: url.replace('right', 'canary-4711'), timeout: PATIENT })
    const host = fakeHost('a')
    onTestFinished(() => relay.stop())
    await relay.start(host)
    expect(host.health.check().reasons).toEqual(['redis is not reachable (WRONGPASS)'])
    const failure = await host.publisher!.publish([event(1)]).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SINK_UNAVAILABLE', reason: 'WRONGPASS' })
    expect(`${(failure as Error).stack} ${JSON.stringify(failure)}`).not.toContain('canary')
  })

  it('refuses an address that is none, without showing it', () => {
    for (const url of ['http://user:canary@host', 'redis://us er:canary@host', 'redis://:canary@host:port']) {
      expect(() => redisRelay({ url })).toThrow('needs a `url`')
      expect(() => redisRelay({ url })).not.toThrow('canary')
    }
  })
})

describe.runIf(hasRedis())('a listener', () => {
  it('begins with a gap, then hears each event once and in order', async () => {
    const redis = await startRedis()
    const { publisher } = await openRelay(redis, 'a')
    await publisher!.publish([event(1), event(2)])
    const { told, listener } = await openListener(redis.url)
    await eventually(() => listener.ready)
    await publisher!.publish([event(3), event(4)])
    // Published again after a hand-over.
    await publisher!.publish([event(3), event(4), event(5)])
    await eventually(() => told.includes('event e5'))
    expect(told).toEqual(['gap null to 2', 'event e3', 'event e4', 'event e5'])
  })

  it.each([
    ['a mark beyond the log', ['SET', '1:9223372036854775807']],
    ['a mark with more digits than a position', ['SET', `1:${'9'.repeat(30)}`]],
    ['a text of ten megabytes', ['SET', 'x'.repeat(10_000_000)]],
    ['a list', ['LPUSH', 'x']],
  ])(
    'hears every event, and is told of a gap once, after somebody wrote %s as the last message',
    async (_, [verb, value]) => {
      const redis = await startRedis()
      const { publisher } = await openRelay(redis, 'a')
      const client = await redis.client()
      await publisher!.publish([event(1)])
      const { told, ids, listener } = await openListener(redis.url)
      await eventually(() => listener.ready)
      await client.del(`${CHANNEL}:last`)
      await client.sendCommand([verb!, `${CHANNEL}:last`, value!])
      const { told: late, listener: latecomer } = await openListener(redis.url)
      await eventually(() => latecomer.ready)
      for (const position of [2, 3, 4]) await publisher!.publish([event(position)])
      await eventually(() => ids().length === 3 && late.includes('event e4'))
      expect(ids()).toEqual(['e2', 'e3', 'e4'])
      expect(told.filter((line) => line.startsWith('gap'))).toEqual(['gap null to 1', 'gap 1 to 2'])
      expect(late.slice(-3)).toEqual(['event e2', 'event e3', 'event e4'])
      expect(listener.refused + latecomer.refused).toBe(0)
    },
  )

  it('hears an event after a forged message that has its id, its position or both', async () => {
    const redis = await startRedis()
    const { publisher } = await openRelay(redis, 'a')
    const { told, listener } = await openListener(redis.url)
    await eventually(() => listener.ready)
    const client = await redis.client()
    const forged = {
      v: 1,
      kind: 'custom',
      epoch: 1,
      version: null,
      aggregate: null,
      tenant: null,
      origin: 'x',
      previous: null,
    }
    for (const [id, position] of [
      ['e1', '1'],
      ['e1', '9223372036854775807'],
      ['other', '1'],
    ]) {
      await client.publish(CHANNEL, JSON.stringify({ ...forged, id, position, type: 'forged.event' }))
    }
    await eventually(() => told.filter((line) => line.startsWith('event')).length === 3)
    const before = told.length
    await publisher!.publish([event(1)])
    await eventually(() => told.slice(before).includes('event e1'))
    expect(told[before]).toMatch(/^gap/)
  })

  it('is told of a gap when it was away, and of none when nothing was missed', async () => {
    const redis = await startRedis()
    const { publisher } = await openRelay(redis, 'a')
    const { told, listener } = await openListener(redis.url)
    await publisher!.publish([event(1)])
    await eventually(() => told.includes('event e1'))
    const before = [...told]
    // Cut off, with nothing published meanwhile.
    await (await redis.client()).sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await eventually(() => !listener.ready)
    await eventually(() => listener.ready)
    expect(told).toEqual(before)
    await (await redis.client()).sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await eventually(() => !listener.ready)
    await publisher!.publish([event(2), event(3)])
    await eventually(() => listener.ready && told.length > before.length)
    await publisher!.publish([event(4)])
    await eventually(() => told.includes('event e4'))
    expect(told.slice(before.length)).toEqual(['gap 1 to 3', 'event e4'])
  })

  it('tells a gap when Redis has lost everything', async () => {
    const redis = await startRedis()
    const { publisher } = await openRelay(redis, 'a')
    const { told, listener } = await openListener(redis.url)
    await publisher!.publish([event(1)])
    await eventually(() => told.includes('event e1'))
    await redis.kill()
    await eventually(() => !listener.ready)
    expect(listener.reason).toMatch(/redis is not reachable/)
    await redis.start()
    await eventually(() => told.includes('gap 1 to null'))
    await eventually(() => listener.ready)
  })

  it('goes on after a forged message that claims to be far ahead', async () => {
    const redis = await startRedis()
    const { publisher } = await openRelay(redis, 'a')
    const { told, ids, listener } = await openListener(redis.url)
    await publisher!.publish([event(1)])
    const forged = { v: 1, id: 'forged', type: 'a.b', kind: 'custom', position: '9223372036854775807', epoch: 9 }
    const rest = { version: null, aggregate: null, tenant: null, origin: 'x', previous: null }
    const stranger = await redis.client()
    await stranger.publish(CHANNEL, JSON.stringify({ ...forged, ...rest }))
    await stranger.publish(CHANNEL, 'nonsense')
    await publisher!.publish([event(2)])
    await eventually(() => told.includes('event e2'))
    expect(ids()).toEqual(['e1', 'forged', 'e2'])
    expect(told.at(-2)).toBe('gap 9223372036854775807 to 2')
    expect(listener.refused).toBe(1)
  })

  it('makes up for an event that failed, and tries a gap until it succeeds', async () => {
    const redis = await startRedis()
    const { publisher } = await openRelay(redis, 'a')
    let failures = 2
    const { told, listener } = await openListener(redis.url, {
      onEvent({ id }) {
        if (id === 'e2') throw new Error('no')
      },
      onGap({ to }) {
        if (to === 2n && failures-- > 0) throw new Error('not yet')
      },
    })
    await publisher!.publish([event(1), event(2), event(3)])
    await eventually(() => told.includes('event e3'))
    expect(told.slice(-5)).toEqual(['event e2', 'gap 1 to 2', 'gap 1 to 2', 'gap 1 to 2', 'event e3'])
    expect(listener.ready).toBe(true)
  })

  it('starts without Redis, and is not ready', async () => {
    const { listener, told } = await openListener(await noRedis())
    expect([listener.ready, listener.reason, told]).toEqual([false, 'redis is not reachable (ECONNREFUSED)', []])
  })
})
