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
  it('nudges the tailer for what is beyond it, ignores its own words, and nudges after a gap', async () => {
    const redis = await startRedis()
    const [a, b] = [await openRelay(redis, 'a'), await openRelay(redis, 'b')]
    const [before, own] = [b.nudges, a.nudges]
    b.position = 2n
    await a.publisher!.publish([event(1), event(2)])
    await a.publisher!.publish([event(3)])
    await eventually(() => b.nudges > before)
    expect(a.nudges).toBe(own)
    expect(a.publisher!.id).toBe(`redis:${CHANNEL}`)
    // Read already, but something before it was never heard.
    b.position = 100n
    await eventually(async () => (await redis.client()).set(`${CHANNEL}:last`, '1:40'))
    const nudges = b.nudges
    await a.publisher!.publish([event(41)])
    await eventually(() => b.nudges === nudges + 1)
    expect(await b.metrics.text()).toContain('aftercommit_redis_gaps_total 1')
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
