/** Word of events between instances: one message for each, and hooks that hear at once where the database rings nobody. */
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { redisRelay } from '../../src/adapters/redis/index.ts'
import { reloadHook } from '../../src/hooks/index.ts'
import type { Aftercommit } from '../../src/instance.ts'
import { ear, openHooks } from '../hooks/support/open-hooks.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { hasRedis, noRedis, type RedisServer, startRedis } from '../support/redis.ts'

const RELAYING = fileURLToPath(new URL('./relaying.mjs', import.meta.url))
const CHANNEL = 'aftercommit:aftercommit:events'

interface Words {
  readonly id: string
  readonly position: string
  readonly previous: string | null
  readonly origin: string
}

/** What anybody hears who listens to the channel. */
async function spy(redis: RedisServer): Promise<{ texts: string[]; messages(): Words[] }> {
  const texts: string[] = []
  await (await redis.client()).subscribe(CHANNEL, (text) => void texts.push(text))
  return { texts, messages: () => texts.map((text) => JSON.parse(text) as Words) }
}

const counted = async (ac: Aftercommit, outcome: string) => {
  const line = new RegExp(`aftercommit_redis_messages_total\\{outcome="${outcome}"\\} (\\d+)`)
  return Number(line.exec(await ac.metrics())?.[1] ?? 0)
}

describe.runIf(hasRedis())('three instances with a Redis between them', () => {
  it('tell each change with exactly one message, and each reloads once', async () => {
    const redis = await startRedis()
    const { texts, messages } = await spy(redis)
    const { ac, another, emit } = await openHooks()
    const loads = [0, 0, 0]
    const instances = [ac, another(), another()]
    for (const [at, instance] of instances.entries()) {
      instance.hooks.connect(redisRelay({ url: redis.url }))
      instance.hooks.add(reloadHook({ name: 'policies', debounce: '5ms', reload: () => void loads[at]!++ }))
    }
    await Promise.all(instances.map((instance) => instance.start()))
    await eventually(() => instances.every((instance) => instance.health().ready))
    expect(loads).toEqual([1, 1, 1])
    await emit('a', { key: '7', tenant: 'acme', payload: { secret: 'never in a message' } })
    await eventually(() => loads.every((count) => count === 2))
    await eventually(() => messages().length === 1)
    await emit('b')
    await eventually(() => messages().length === 2 && loads.every((count) => count === 3))
    const [first, second] = messages()
    expect(first).toEqual({
      v: 1,
      id: 'a',
      type: 'lamp.lit',
      kind: 'custom',
      position: first!.position,
      epoch: expect.any(Number),
      version: null,
      aggregate: { type: 'lamp', id: '7' },
      tenant: 'acme',
      origin: first!.origin,
      previous: null,
    })
    expect(second).toMatchObject({ id: 'b', previous: first!.position, origin: first!.origin })
    expect(texts.join()).not.toContain('never in a message')
    // Each heard each message once, and nobody sent anything on.
    const countedBy = async (outcome: string) =>
      (await Promise.all(instances.map((instance) => counted(instance, outcome)))).sort()
    await eventually(async () => (await countedBy('heard')).join() === '2,2,2')
    expect(await countedBy('published')).toEqual([0, 0, 2])
    await eventually(() => instances.every((instance) => instance.health().ready))
  })

  it('are right after Redis was away while things changed, and none of its words is missing', async () => {
    const redis = await startRedis()
    const { ac, sql, another, emit } = await openHooks()
    await sql.query('create table policies (id text)')
    const instances = [ac, another(), another()].map((instance) => {
      const kept = { ids: [] as string[] }
      instance.hooks.connect(redisRelay({ url: redis.url, timeout: '300ms' }))
      instance.hooks.add(
        reloadHook({
          name: 'policies',
          debounce: '1ms',
          async reload() {
            const { rows } = await instance.transaction((tx) =>
              tx.query<{ id: string }>('select id from policies order by id'),
            )
            kept.ids = rows.map(({ id }) => id)
          },
        }),
      )
      return { instance, kept }
    })
    await Promise.all(instances.map(({ instance }) => instance.start()))
    await redis.kill()
    await eventually(() => instances.every(({ instance }) => !instance.health().ready))
    expect(ac.health().live).toBe(true)
    expect(ac.health().reasons.join()).toMatch(/redis is not reachable \(\w+\)/)
    const ids = Array.from({ length: 20 }, (_, at) => `p${String(at).padStart(2, '0')}`)
    for (const id of ids) {
      await sql.query('insert into policies values ($1)', [id])
      await emit(id, { type: 'policy.created' })
    }
    // The log does not need Redis: what is behind it are words, not events.
    await eventually(() => instances.every(({ kept }) => kept.ids.length === ids.length))
    await redis.start()
    const { messages } = await spy(redis)
    await emit('last')
    await eventually(() => messages().some(({ id }) => id === 'last'), { deadline: 40_000 })
    await eventually(() => instances.every(({ instance }) => instance.health().ready))
    for (const { kept } of instances) expect(kept.ids).toEqual(ids)
    expect((await ac.deadLetters.list()).length).toBe(0)
    await eventually(async () => (await ac.subscriptions.get(`redis:${CHANNEL}`).status()).lag === 0n)
  })

  it('go on when Redis stands still and wakes up again', async () => {
    const redis = await startRedis()
    const { messages } = await spy(redis)
    const { ac, another, emit } = await openHooks()
    const other = another()
    const { handle, hears } = ear()
    other.hooks.add({ name: 'all', scope: 'instance', handle })
    for (const instance of [ac, other]) {
      instance.hooks.connect(redisRelay({ url: redis.url, timeout: '300ms' }))
      await instance.start()
    }
    redis.pause()
    await eventually(() => !ac.health().ready && !other.health().ready)
    await emit('while paused')
    await hears('while paused')
    redis.resume()
    await emit('after')
    await eventually(() => messages().some(({ id }) => id === 'after'), { deadline: 40_000 })
    expect(new Set(messages().map(({ id }) => id))).toEqual(new Set(['while paused', 'after']))
    await eventually(() => ac.health().ready && other.health().ready)
  })

  it('look at the log for a message that is not theirs, and take nothing from it', async () => {
    const redis = await startRedis()
    const { ac, another, emit } = await openHooks()
    const other = another()
    const { handle, hears } = ear()
    other.hooks.add({ name: 'all', scope: 'instance', handle })
    for (const instance of [ac, other]) {
      instance.hooks.connect(redisRelay({ url: redis.url }))
      await instance.start()
      await eventually(() => instance.health().ready)
    }
    const stranger = await redis.client()
    const genuine = { v: 1, id: 'x', type: 'a.b', kind: 'custom', position: '5', epoch: 1, version: null }
    const rest = { aggregate: null, tenant: null, origin: 'stranger', previous: null }
    const hostile = [
      'not json',
      '[]',
      'null',
      '"text"',
      '{}',
      JSON.stringify({ ...genuine, ...rest, v: 2 }),
      JSON.stringify({ ...genuine, ...rest, position: 5 }),
      JSON.stringify({ ...genuine, ...rest, position: '99999999999999999999' }),
      JSON.stringify({ ...genuine, ...rest, kind: 'destroyed' }),
      JSON.stringify({ ...genuine, ...rest, aggregate: ['a', 'b'] }),
      JSON.stringify({ ...genuine, ...rest, tenant: { $gt: '' } }),
      JSON.stringify({ ...genuine, ...rest, id: 'x'.repeat(1_000_000) }),
      `{"__proto__":{"polluted":true},"v":1}`,
      '['.repeat(100_000),
    ]
    for (const text of hostile) await stranger.publish(CHANNEL, text)
    // Well formed and a lie: it names an event that nobody has, far away.
    await stranger.publish(CHANNEL, JSON.stringify({ ...genuine, ...rest, position: '9223372036854775807' }))
    await emit('real')
    await hears('real')
    for (const instance of [ac, other]) {
      // The hostile ones, the lie and the real one.
      await eventually(async () => (await counted(instance, 'heard')) === hostile.length + 2)
      await eventually(() => instance.health().ready)
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })
})

describe.runIf(hasRedis())('the process that publishes', () => {
  beforeAll(buildPackage)

  it('is replaced when it is killed, and no word is missing', async () => {
    const redis = await startRedis()
    const { messages } = await spy(redis)
    const { url, emitMany } = await openHooks()
    const first = spawnScript(RELAYING, [url, redis.url])
    await first.waitForLine('started')
    await emitMany(300, { prefix: 'a' })
    const second = spawnScript(RELAYING, [url, redis.url])
    await second.waitForLine('started')
    await eventually(() => messages().length > 0)
    const origin = messages()[0]!.origin
    await emitMany(300, { prefix: 'b' })
    first.kill('SIGKILL')
    await first.exited
    await emitMany(300, { prefix: 'c' })
    await eventually(() => new Set(messages().map(({ id }) => id)).size === 900, { deadline: 60_000 })
    expect(messages().some((message) => message.origin !== origin)).toBe(true)
    const positions = [...new Set(messages().map(({ position }) => BigInt(position)))]
    expect(positions).toEqual([...positions].sort((a, b) => Number(a - b)))
  })
})

describe.runIf(hasRedis())('a process that the database does not ring', () => {
  it('hears of what another one publishes', async () => {
    const redis = await startRedis()
    const { ac, another, emit } = await openHooks({ log: { wake: 'poll' } })
    await ac.migrate()
    const other = another()
    const { handle, hears } = ear()
    other.hooks.add({ name: 'all', scope: 'instance', handle })
    for (const instance of [ac, other]) {
      instance.hooks.connect(redisRelay({ url: redis.url }))
      await instance.start()
      await eventually(() => instance.health().ready)
    }
    for (const id of ['a', 'b', 'c']) {
      await emit(id)
      await hears(id)
    }
    await eventually(async () => (await counted(ac, 'heard')) + (await counted(other, 'heard')) === 6)
  })
})

describe('a relay that cannot work', () => {
  it('does not keep an instance from starting and emitting, and says why it is not ready', async () => {
    const { ac, emit } = await openHooks()
    const { handle, hears } = ear()
    ac.hooks.add({ name: 'all', scope: 'instance', handle })
    ac.hooks.connect(redisRelay({ url: `${await noRedis()}/?secret=canary` }))
    await ac.start()
    await emit('a')
    await hears('a')
    const { live, ready, reasons } = ac.health()
    expect([live, ready]).toEqual([true, false])
    expect(reasons).toContain('redis is not reachable (ECONNREFUSED)')
    await ac.stop()
  })

  it('costs nothing when it is disabled', async () => {
    const { ac } = await openHooks()
    ac.hooks.connect(redisRelay({ url: 'redis://nobody.invalid', enabled: () => false }))
    await ac.start()
    await eventually(() => ac.health().ready)
    expect((await ac.subscriptions.list()).map(({ id }) => id)).toEqual([])
  })

  it('is refused when it is connected twice', async () => {
    const { ac } = await openHooks()
    ac.hooks.connect(redisRelay({ url: 'redis://localhost' }))
    expect(() => ac.hooks.connect(redisRelay({ url: 'redis://localhost' }))).toThrow('connected twice')
  })
})
