/** Slow handlers, slow networks and wrong clocks: leases follow the database's clock and are renewed apart from the work. */
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { instance } from '../log/support/open-log.ts'
import { emitMany, gate, numbered, openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { createProxy } from '../support/proxy.ts'
import { duplicatesIn, fileLedger, startWorker, watchCheckpoints } from './support/workers.ts'

beforeAll(buildPackage)

const SHIFTED = fileURLToPath(new URL('support/shifted-clock.mjs', import.meta.url))

describe('a handler that computes for five seconds without a pause', () => {
  it('keeps its lease, although another process waits for it, and is not run twice', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    const writes = await watchCheckpoints(sql)
    const ledger = fileLedger()
    const options = { instance: { database: url }, subscriptions: [{ id: 'sub', behaviour: { cpuMs: 5_000 } }] }
    const first = await startWorker(ledger, options)
    await emitMany(sql, 1, { prefix: 'warm-' })
    await eventually(() => ledger.entries().length > 0)
    await startWorker(ledger, options)
    await emitMany(sql, 2, { keys: 1 })
    await ledger.reaches(3)
    expect(ledger.entries().every(({ pid }) => pid === first.pid)).toBe(true)
    expect(duplicatesIn(ledger.ended())).toBe(0)
    const { rows } = await sql.query('select distinct term from public.checkpoint_writes')
    expect(rows).toEqual([{ term: '1' }])
    await writes.expectMonotonic()
  })
})

describe('a handler that takes long for one key', () => {
  it('holds up that key alone, and all keys of its subscription once as many calls as its concurrency are under way', async () => {
    const { ac, sql } = await openSubscriptions()
    const { passed, open } = gate()
    const begun: Record<string, string[]> = {}
    const subscribe = (id: string, concurrency?: number) => {
      const seen: string[] = []
      begun[id] = seen
      ac.subscribe({
        id,
        ...(concurrency !== undefined && { concurrency }),
        handle: async (event) => {
          seen.push(event.id)
          if (id !== 'quick' && event.id === 'n1') await passed
        },
      })
    }
    subscribe('default')
    subscribe('two-at-a-time', 2)
    subscribe('quick')
    await emitMany(sql, 20, { prefix: 'n', keys: 10 })
    await ac.start()
    // The second event of the slow key, n11, waits for the first; the nine other keys go on.
    await eventually(() => begun['two-at-a-time']!.length === 19 && begun.quick!.length === 20)
    expect(begun['two-at-a-time']).not.toContain('n11')
    expect(begun.default).toEqual(['n1'])
    open()
    await eventually(() => begun.default!.length === 20 && begun['two-at-a-time']!.length === 20)
  })
})

describe('a network with a round trip of 200 ms', () => {
  it('is slow, and the lease stays where it is', async () => {
    const { url, sql } = await openSubscriptions()
    const proxy = await createProxy(url)
    const ac = instance({ database: proxy.url })
    const standby = instance({ database: url })
    const [seen, other] = [recorder(), recorder()]
    ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emitMany(sql, 1, { prefix: 'first-' })
    await seen.sees('first-1')
    standby.subscribe({ id: 'sub', handle: other.handle })
    await standby.start()
    proxy.delay(100)
    for (let n = 0; n < 6; n++) {
      await emitMany(sql, 50, { prefix: `${n}-` })
      await seen.sees(`${n}-50`)
    }
    expect(other.ids).toEqual([])
    const { rows } = await sql.query('select term from aftercommit.subscription_partitions')
    expect(rows).toEqual([{ term: '1' }])
    expect(seen.calls).toHaveLength(301)
    proxy.pass()
  })
})

describe.each([
  { what: 'an hour ahead', shift: 3_600_000 },
  { what: 'an hour behind', shift: -3_600_000 },
  { what: 'jumping back and forth', shift: 'jumping' },
])('a process whose clock is $what', ({ shift }) => {
  it('tries, parks and leases by the clock of the database', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    const ledger = fileLedger()
    const env = { NODE_OPTIONS: `--import ${SHIFTED}`, SHIFT_MS: String(shift) }
    const retry = { maxAttempts: 3, initialDelay: '20ms' }
    const options = {
      instance: { database: url },
      subscriptions: [{ id: 'sub', retry, behaviour: { fails: ['event-5'] } }],
      env,
    }
    await startWorker(ledger, options)
    await startWorker(ledger, options)
    await emitMany(sql, 20, { keys: 20 })
    await ledger.reaches(19)
    await eventually(async () => (await sql.query('select from aftercommit.letters')).rowCount === 1)
    expect(ledger.entries().filter(({ id, what }) => id === 'event-5' && what === 'begin')).toHaveLength(3)
    expect(duplicatesIn(ledger.ended())).toBe(0)
    const { rows } = await sql.query(
      `select first_attempt_at <= last_attempt_at as "inOrder",
              first_attempt_at > clock_timestamp() - interval '5 minutes' as "notLongAgo",
              last_attempt_at < clock_timestamp() + interval '1 minute' as "notAhead"
         from aftercommit.letters`,
    )
    expect(rows).toEqual([{ inOrder: true, notLongAgo: true, notAhead: true }])
    const { rows: leases } = await sql.query(
      `select p.term, l.lease_until between clock_timestamp() and clock_timestamp() + interval '16 seconds' as fits
         from aftercommit.subscription_partitions p join aftercommit.live_leases l on l.lease = p.owner`,
    )
    expect(leases).toEqual([{ term: '1', fits: true }])
  })
})

describe('a key that waits for its next try', () => {
  it('for a long time, with much behind it, lets all other keys through', async () => {
    const { ac, emitMany, emit } = await openSubscriptions()
    const seen = recorder(({ id }) => {
      if (id === 'slow') throw new Error('not yet')
    })
    ac.subscribe({ id: 'sub', retry: { maxAttempts: 4, initialDelay: '1h', maxDelay: '1h' }, handle: seen.handle })
    await ac.start()
    await emit('slow', { key: '0' })
    await emitMany(2_000, { keys: 10 })
    const others = numbered(2_000).filter((_, i) => (i + 1) % 10 !== 0)
    await eventually(() => seen.calls.length === others.length + 1)
    expect(seen.ids).toEqual(['slow', ...others])
    // A restart skips what is finished above the event that waits.
    await ac.stop()
  })
})
