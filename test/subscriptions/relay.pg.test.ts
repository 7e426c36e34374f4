/** The outbox to a bus: in order, at least once, by one process at a time, with patience for the bus. */
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  type MemorySink,
  memorySink,
  type RelayHandle,
  RetryAfter,
  type Sink,
  SinkUnavailable,
} from '../../src/index.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { spawnScript } from '../support/processes.ts'
import { numbered, openSubscriptions, QUICK } from './support/open-subscriptions.ts'

const RELAY_TO_TABLE = fileURLToPath(new URL('./support/relay-to-table.mjs', import.meta.url))
const idsOf = (sink: MemorySink) => sink.messages.map(({ id }) => id)

describe.each([{ major: 18 }, { major: 14 }] as const)('a relay, on Postgres $major', ({ major }) => {
  it('publishes what was committed, each event once, in the order of the log', async () => {
    const { ac, sql, emit, emitMany } = await openSubscriptions({ major })
    const sink = memorySink()
    ac.relay({ id: 'bus', to: sink })
    await emitMany(250)
    await expect(
      ac.transaction(async (tx) => {
        await tx.emit('lamp.lit', { id: 'never', payload: {} })
        throw new Error('rolled back')
      }),
    ).rejects.toThrow('rolled back')
    await emit('last')
    await ac.drain()
    expect(idsOf(sink)).toEqual([...numbered(250), 'last'])
    expect(sink.calls.length).toBeLessThan(20)
    const { rows } = await sql.query(
      `select o.event_id from aftercommit.outbox o join aftercommit.events e on e.id = o.event_id
        where o.relay = 'bus' and o.published_at is not null order by e.position`,
    )
    expect(rows.map(({ event_id }) => event_id)).toEqual(idsOf(sink))
    expect(JSON.parse(sink.messages[0]!.cloudEvent)).toMatchObject({
      source: 'urn:aftercommit:aftercommit',
      id: 'event-1',
    })
  })

  it('shows as published only what its filter lets through, and as pending only what it has not published', async () => {
    const { ac, sql, emit } = await openSubscriptions({ major })
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink, on: ['lamp.lit'] })
    await emit('a')
    await emit('dark', { type: 'lamp.broken' })
    await emit('b')
    expect((await relay.pending()).map(({ id }) => id)).toEqual(['a', 'b'])
    await ac.drain()
    expect(await relay.pending()).toEqual([])
    await emit('c')
    await emit('d')
    expect((await relay.pending(1)).map(({ id }) => id)).toEqual(['c'])
    const { rows } = await sql.query('select event_id from aftercommit.outbox')
    expect(rows.map(({ event_id }) => event_id).sort()).toEqual(['a', 'b'])
    expect((await relay.status()).kind).toBe('relay')
  })

  it('loses nothing and repeats nothing over stops and starts', async () => {
    const { ac, another, emitMany } = await openSubscriptions({ major })
    const sink = { ...memorySink(), close: undefined } as unknown as MemorySink
    for (let round = 1; round <= 4; round++) {
      const process = another()
      process.relay({ id: 'bus', to: sink, batchSize: 7 })
      await process.start()
      await emitMany(40, { prefix: `${round}-` })
      await eventually(() => sink.messages.length > (round - 1) * 40)
      await process.stop()
    }
    ac.relay({ id: 'bus', to: sink })
    await ac.drain()
    const expected = [1, 2, 3, 4].flatMap((round) => numbered(40, `${round}-`))
    expect(sink.messages.map(({ id }) => id)).toEqual(expected)
  })

  it('runs in one of two processes, and in the other when that one stops', async () => {
    const { ac, another, emitMany } = await openSubscriptions({ major })
    const sinks = [memorySink({ name: 'one' }), memorySink({ name: 'two' })] as const
    const processes = [ac, another()] as const
    for (const [i, process] of processes.entries()) process.relay({ id: 'bus', to: sinks[i]! })
    await Promise.all(processes.map((process) => process.start()))
    const published = () => sinks.flatMap((sink) => idsOf(sink))
    await emitMany(100, { prefix: 'x-' })
    await eventually(() => published().length >= 100)
    const first = sinks[0].messages.length > 0 ? 0 : 1
    await processes[first]!.stop()
    await emitMany(100, { prefix: 'y-' })
    await eventually(() => published().length >= 200)
    expect(idsOf(sinks[first]!)).toEqual(numbered(100, 'x-'))
    expect(idsOf(sinks[1 - first]!)).toEqual(numbered(100, 'y-'))
  })
})

describe('a sink that is unavailable', () => {
  it('is waited for with all that follows: no dead letter, no hole, no other order', async () => {
    const { logger, lines } = collectingLogger()
    const { ac, emitMany } = await openSubscriptions({ logger })
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink, retry: QUICK })
    sink.failNext(Number.POSITIVE_INFINITY, new SinkUnavailable('read-only replica'))
    await emitMany(20)
    await ac.start()
    await eventually(async () => sink.calls.length >= 30 && (await relay.status()).status === 'failing')
    expect((await relay.status()).position).toBe(0n)
    await emitMany(20, { prefix: 'later-' })
    const failed = sink.calls.length
    sink.failNext(0)
    await eventually(() => sink.messages.length === 40)
    expect(idsOf(sink)).toEqual([...numbered(20), ...numbered(20, 'later-')])
    expect(sink.calls.slice(0, failed + 1).every((ids) => ids.length === 20)).toBe(true)
    expect(await ac.deadLetters.count()).toBe(0)
    expect((await relay.status()).status).toBe('active')
    expect(lines).toContain('warn destination unavailable; everything waits for it')
  })

  it('that says something else is recognised by failing for key after key, and is sent their messages again', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink, retry: QUICK })
    sink.failNext(Number.POSITIVE_INFINITY, new Error('something went wrong'))
    await emitMany(20)
    await ac.start()
    await eventually(async () => (await relay.status()).status === 'failing')
    sink.failNext(0)
    await eventually(async () => sink.messages.length === 20 && (await relay.status()).status === 'active')
    expect(perKey(idsOf(sink))).toEqual(perKey(numbered(20)))
    expect(await relay.status()).toMatchObject({ deadLetters: 0, parked: 0 })
  })

  it('does not keep a process from stopping', async () => {
    const { ac, another, emit } = await openSubscriptions()
    const away = memorySink()
    away.failNext(Number.POSITIVE_INFINITY, new SinkUnavailable('away'))
    ac.relay({ id: 'bus', to: away, retry: { initialDelay: '1h', maxDelay: '1h' } })
    await emit('a', { key: 'k' })
    await emit('b', { key: 'l' })
    await ac.start()
    await eventually(() => away.calls.length > 0)
    await ac.stop()
    expect(away.closed).toBe(true)
    const sink = memorySink()
    const next = another()
    next.relay({ id: 'bus', to: sink })
    await next.drain()
    expect(idsOf(sink)).toEqual(['a', 'b'])
    expect(await next.deadLetters.count()).toBe(0)
  })

  it('does not keep a relay from being paused, stopped or sought', async () => {
    const { ac, another, emit } = await openSubscriptions()
    const away = memorySink()
    away.failNext(Number.POSITIVE_INFINITY, new SinkUnavailable('away'))
    const relay = ac.relay({ id: 'bus', to: away, retry: { initialDelay: '1h', maxDelay: '1h' } })
    await emit('a')
    await emit('b')
    await ac.start()
    await eventually(() => away.calls.length === 1)
    await relay.pause()
    expect((await relay.status()).owner).toBe(null)
    await relay.resume()
    await eventually(() => away.calls.length === 2)
    await relay.seek(1n)
    await eventually(() => away.calls.length === 3)
    expect(away.calls[2]).toEqual(['b'])
    await relay.stop()
    const sink = memorySink()
    const next = another()
    next.relay({ id: 'bus', to: sink })
    await next.drain()
    expect(idsOf(sink)).toEqual(['b'])
  })

  it('and asks for time is called again after that time, with the same messages and no attempt used up', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink, retry: { maxAttempts: 1, initialDelay: '1h', maxDelay: '1h' } })
    sink.failNext(3, new RetryAfter('10ms'))
    await emitMany(5)
    await ac.start()
    await eventually(async () => sink.messages.length === 5 && (await relay.status()).status === 'active')
    expect(sink.calls.map(({ length }) => length)).toEqual([5, 5, 5, 5])
    expect(await ac.deadLetters.count()).toBe(0)
  })

  it('gets each message once, also those behind one that is being retried', async () => {
    const { ac, emit } = await openSubscriptions()
    const accepted: string[] = []
    let hasRefused = false
    let isAway = true
    const sink: Sink = {
      ...memorySink(),
      async publish(messages) {
        const ids = messages.map(({ id }) => id)
        if (ids.includes('first') && !hasRefused) {
          hasRefused = true
          throw new Error('not this one')
        }
        if (ids.includes('free') && isAway) {
          isAway = false
          throw new SinkUnavailable('away')
        }
        accepted.push(...ids)
      },
    }
    ac.relay({ id: 'bus', to: sink, retry: { maxAttempts: 4, initialDelay: '500ms', maxDelay: '500ms' } })
    await emit('first', { key: 'k' })
    await ac.start()
    await eventually(() => hasRefused)
    await ac.transaction(async (tx) => {
      for (const [id, aggregate] of [
        ['free', 'l'],
        ['behind', 'k'],
        ['last', 'm'],
      ] as const) {
        await tx.emit('lamp.lit', { id, aggregate: { type: 'lamp', id: aggregate }, payload: {} })
      }
    })
    await ac.drain()
    expect([...accepted].sort()).toEqual(['behind', 'first', 'free', 'last'])
    expect(accepted.indexOf('first')).toBeLessThan(accepted.indexOf('behind'))
  })

  it('that hangs is called again after its time', async () => {
    const { ac, emit } = await openSubscriptions()
    const sink = memorySink()
    ac.relay({ id: 'bus', to: sink, retry: { ...QUICK, maxAttempts: 10_000 }, timeout: '50ms' })
    const release = sink.hang()
    await emit('a')
    await emit('b')
    await ac.start()
    await eventually(() => sink.calls.length >= 2)
    release()
    await eventually(() => sink.messages.length === 2)
    expect(idsOf(sink).sort()).toEqual(['a', 'b'])
  })
})

describe('a message that the sink refuses', () => {
  it('is parked with what follows of its key; everything else passes, once and in order', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const sink = memorySink({ deduplicating: true })
    const relay = ac.relay({ id: 'bus', to: sink, retry: QUICK })
    let refuses = true
    sink.refuse(({ id }) => refuses && id === 'event-33')
    await emitMany(100)
    await ac.start()
    await eventually(async () => (await relay.status()).lag === 0n)
    const ofItsKey = (id: string) => Number(id.slice(6)) % 10 === 3
    const parked = numbered(100).filter((id) => ofItsKey(id) && Number(id.slice(6)) >= 33)
    expect(await relay.status()).toMatchObject({ deadLetters: 1, parked: parked.length - 1 })
    expect(perKey(idsOf(sink))).toEqual(perKey(numbered(100).filter((id) => !parked.includes(id))))
    // The batch and its halves down to the message, then that one as often as the policy says.
    const withCulprit = sink.calls.filter((ids) => ids.includes('event-33'))
    expect(withCulprit.filter((ids) => ids.length > 1).length).toBeLessThanOrEqual(7)
    expect(withCulprit.filter((ids) => ids.length === 1)).toHaveLength(QUICK.maxAttempts)
    const [letter] = await ac.deadLetters.list({ owner: 'bus' })
    expect(letter).toMatchObject({
      event: { id: 'event-33' },
      error: { message: 'sink "memory" was told to refuse a message' },
    })

    refuses = false
    await ac.deadLetters.redrive({ owner: 'bus' })
    await eventually(() => sink.messages.length === 100)
    expect(perKey(idsOf(sink))).toEqual(perKey(numbered(100)))
  })

  it('lets nothing pass it with `stop`', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const sink = memorySink({ deduplicating: true })
    const relay = ac.relay({ id: 'bus', to: sink, retry: QUICK, onFailure: 'stop' })
    sink.refuse(({ id }) => id === 'event-7')
    await emitMany(20)
    await ac.start()
    await eventually(async () => (await relay.status()).status === 'stopped')
    expect(idsOf(sink)).toEqual(numbered(6))
    expect((await relay.status()).position).toBe(6n)
  })
})

describe('one batch on demand', () => {
  it('is published, noted and passed, and the next call gives the next batch', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink, batchSize: 20 })
    expect(await relay.pollOnce()).toBe(0)
    await emitMany(30)
    expect(await relay.pollOnce()).toBe(20)
    expect((await relay.pending()).map(({ id }) => id)).toEqual(numbered(30).slice(20))
    expect(await relay.pollOnce()).toBe(10)
    expect(await relay.pollOnce()).toBe(0)
    expect(idsOf(sink)).toEqual(numbered(30))
    expect((await sql.query('select from aftercommit.outbox')).rowCount).toBe(30)
  })

  it('fails with what the sink says, and leaves everything as it was', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink })
    await emitMany(5)
    sink.failNext(1, new Error('not now'))
    await expect(relay.pollOnce()).rejects.toThrow('not now')
    expect(await relay.status()).toMatchObject({ position: 0n, owner: null, deadLetters: 0 })
    expect(await relay.pollOnce()).toBe(5)
    expect(idsOf(sink)).toEqual(numbered(5))
  })

  it('is refused where history forked below what was published, instead of passing what came since', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink })
    await emitMany(5)
    expect(await relay.pollOnce()).toBe(5)
    await sql.query(`insert into aftercommit.epochs (epoch, began_after, reason)
      select max(epoch) + 1, 2, 'played by a test' from aftercommit.epochs`)
    await emitMany(2, { prefix: 'later-' })
    await expect(relay.pollOnce()).rejects.toMatchObject({ code: 'HISTORY_FORKED' })
    expect(sink.messages).toHaveLength(5)
    expect((await relay.status()).position).toBe(5n)
  })

  it('is published once when many ask at the same time', async () => {
    const { ac, another, emitMany } = await openSubscriptions()
    const sink = memorySink()
    await emitMany(50)
    const relays: RelayHandle[] = [ac, another(), another()].map((process) =>
      process.relay({ id: 'bus', to: sink, batchSize: 10 }),
    )
    while (sink.messages.length < 50) await Promise.all(relays.map((relay) => relay.pollOnce()))
    expect(idsOf(sink)).toEqual(numbered(50))
  })

  it('is left to whoever runs the relay', async () => {
    const { ac, another, emit } = await openSubscriptions()
    const sink = memorySink()
    const relay = ac.relay({ id: 'bus', to: sink })
    await ac.start()
    await eventually(async () => (await relay.status()).owner !== null)
    const release = sink.hang()
    await emit('a')
    await eventually(() => sink.calls.length === 1)
    expect(await relay.pollOnce()).toBe(0)
    expect(await another().relay({ id: 'bus', to: sink }).pollOnce()).toBe(0)
    release()
    await eventually(() => sink.messages.length === 1)
    expect(sink.calls).toHaveLength(1)
  })

  it('parks what waits behind a dead letter', async () => {
    const { ac, emit } = await openSubscriptions()
    const sink = memorySink()
    sink.refuse(({ id }) => id === 'poison')
    const relay = ac.relay({ id: 'bus', to: sink, retry: { maxAttempts: 1 } })
    await emit('poison', { key: 'k' })
    await ac.drain()
    await emit('behind', { key: 'k' })
    await emit('free', { key: 'l' })
    expect(await relay.pollOnce()).toBe(1)
    expect(idsOf(sink)).toEqual(['free'])
    expect(await relay.status()).toMatchObject({ deadLetters: 1, parked: 1, lag: 0n })
  })
})

describe('what is remembered of a relay', () => {
  it('goes by age: on demand, and by upkeep after its days', async () => {
    const { ac, sql, emitMany } = await openSubscriptions()
    const relay = ac.relay({ id: 'bus', to: memorySink(), batchSize: 10 })
    await emitMany(30)
    await ac.drain()
    const batches = async () => (await sql.query('select from aftercommit.relay_batches')).rowCount
    expect(await batches()).toBe(3)
    await sql.query(
      `update aftercommit.relay_batches set published_at = published_at - interval '9 days' where first_position = 1`,
    )
    expect(await relay.prune(new Date(Date.now() - 10 * 86_400_000))).toBe(0)
    expect(await relay.prune(new Date(Date.now() - 8 * 86_400_000))).toBe(1)
    expect(await batches()).toBe(2)
    await sql.query(
      `update aftercommit.relay_batches set published_at = published_at - interval '8 days' where first_position = 11`,
    )
    await ac.upkeep()
    expect(await batches()).toBe(1)
    await relay.remove()
    expect(await batches()).toBe(0)
  })
})

describe('registering a relay', () => {
  it('is refused without a sink, with days that are none, and twice', async () => {
    const { ac } = await openSubscriptions()
    const sink = memorySink()
    expect(() => ac.relay({ id: 'bus', to: {} as MemorySink })).toThrow('needs a sink')
    expect(() => ac.relay({ id: 'bus', to: sink, retentionDays: 0 })).toThrow('retentionDays')
    ac.relay({ id: 'bus', to: sink })
    expect(() => ac.relay({ id: 'bus', to: sink })).toThrow('registered twice')
  })
})

describe('a relay that is killed', () => {
  beforeAll(buildPackage, 120_000)

  it('after the sink has accepted and in front of the checkpoint repeats one batch at most, and loses nothing', async () => {
    const { ac, sql, url, emitMany } = await openSubscriptions()
    await sql.query('create table published (n bigint generated always as identity, id text, key text)')
    await emitMany(200)
    const victims = ['event-15', 'event-77', 'event-150']
    for (const victim of victims) {
      const child = spawnScript(RELAY_TO_TABLE, [url, 'bus', victim])
      await child.waitForLine(`published ${victim}`)
      child.kill('SIGKILL')
      await child.exited
    }
    const survivor = spawnScript(RELAY_TO_TABLE, [url, 'bus'])
    await survivor.waitForLine('published event-200')
    await eventually(async () => (await ac.subscriptions.get('bus').status()).lag === 0n)
    const { rows } = await sql.query<{ id: string }>('select id from published order by n')
    const ids = rows.map(({ id }) => id)
    expect(new Set(ids)).toEqual(new Set(numbered(200)))
    expect(ids.length - 200).toBeLessThanOrEqual(victims.length * 10)
    expect(perKey([...new Set(ids)])).toEqual(perKey(numbered(200)))
    expect(await ac.deadLetters.count()).toBe(0)
  }, 120_000)
})

/** Ids by the key that `emitMany` gave them, each list in the order given. */
function perKey(ids: readonly string[]): Record<string, string[]> {
  const lists: Record<string, string[]> = {}
  for (const id of ids) {
    const key = `key ${Number(id.slice(6)) % 10}`
    lists[key] = [...(lists[key] ?? []), id]
  }
  return lists
}
