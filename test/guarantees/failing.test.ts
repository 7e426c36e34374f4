/** A bad deploy must not park the world: a few letters, a subscription that says it is failing, and a way back by itself. */
import { beforeAll, describe, expect, it } from 'vitest'
import { emitMany, numbered, openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { expectOrderPerKey, fileLedger, startWorker } from './support/workers.ts'

beforeAll(buildPackage)

const RETRY = { maxAttempts: 2, initialDelay: '5ms', maxDelay: '50ms' } as const

describe.each([
  { mode: 'one lane', options: {} },
  { mode: 'eight lanes', options: { concurrency: 8 } },
  { mode: 'batches', options: { batch: true } },
])('a deploy in which every event fails, with $mode', ({ options }) => {
  it('parks five keys at most; the next deploy handles everything in order and redrives those by itself', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    const ledger = fileLedger()
    const instance = { database: url }
    await emitMany(sql, 400, { keys: 40 })
    const bad = await startWorker(ledger, {
      instance,
      subscriptions: [{ id: 'sub', retry: RETRY, ...options, behaviour: { fails: 'all' } }],
    })
    await bad.waitForLine('subscription is failing')
    const letters = async () => (await sql.query(`select status from aftercommit.letters`)).rows
    await eventually(async () => (await letters()).length >= 5)
    // It goes on trying, and the letters do not become more.
    const begun = ledger.entries().length
    await eventually(() => ledger.entries().length > begun + 5)
    expect((await letters()).length).toBe(5)
    const { rows } = await sql.query(`select status, reason from aftercommit.subscriptions`)
    expect(rows[0]).toMatchObject({ status: 'failing', reason: expect.stringContaining('5 keys in a row') })
    bad.kill('SIGTERM')
    await bad.exited

    await startWorker(ledger, { instance, subscriptions: [{ id: 'sub', retry: RETRY, ...options }] })
    await ledger.reaches(400)
    expectOrderPerKey(ledger.ended())
    await eventually(async () => (await letters()).every(({ status }) => status === 'resolved'))
    await eventually(async () => (await sql.query('select from aftercommit.parked')).rowCount === 0)
    await eventually(async () => {
      const { rows: after } = await sql.query('select status, reason from aftercommit.subscriptions')
      return after[0].status === 'active' && after[0].reason === null
    })
  })
})

describe('a handler that is mended while the process runs', () => {
  it('is found out by the next try of the head, and everything follows', async () => {
    const { ac, emitMany } = await openSubscriptions()
    let broken = true
    const done: string[] = []
    const seen = recorder(({ id }) => {
      if (broken) throw new Error('the service is down')
      done.push(id)
    })
    const handle = ac.subscribe({ id: 'sub', retry: RETRY, handle: seen.handle })
    await emitMany(100, { keys: 100 })
    await ac.start()
    await eventually(async () => (await handle.status()).status === 'failing')
    broken = false
    await eventually(() => done.length === 100)
    expect([...done].sort()).toEqual(numbered(100).sort())
    await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 0)
    expect(await ac.deadLetters.count()).toBe(5)
    await eventually(async () => (await handle.status()).status === 'active')
  })
})

describe('poison now and then', () => {
  it('is parked event by event and never makes the subscription fail', async () => {
    const { ac, emitMany } = await openSubscriptions()
    const seen = recorder(({ position }) => {
      if (position % 3n === 0n) throw new Error('poison')
    })
    const handle = ac.subscribe({ id: 'sub', retry: { maxAttempts: 1 }, handle: seen.handle })
    await emitMany(90, { keys: 90 })
    await ac.drain()
    expect(await handle.status()).toMatchObject({ status: 'active', position: 90n, deadLetters: 30 })
    expect(seen.calls).toHaveLength(90)
  })

  it('that was a letter before the bad deploy stays one: only letters of the streak are redriven', async () => {
    const { ac, emit, emitMany } = await openSubscriptions()
    let broken = false
    const seen = recorder(({ id }) => {
      if (broken || id === 'poison') throw new Error('no')
    })
    const handle = ac.subscribe({ id: 'sub', retry: { maxAttempts: 1, maxDelay: '20ms' }, handle: seen.handle })
    await ac.start()
    await emit('poison')
    await emit('fine')
    await seen.sees('fine')
    broken = true
    await emitMany(20, { keys: 20 })
    await eventually(async () => (await handle.status()).status === 'failing')
    broken = false
    await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 5)
    const left = await ac.deadLetters.list({ status: 'dead' })
    expect(left.map(({ event }) => event.id)).toEqual(['poison'])
    expect(seen.ids.filter((id) => id === 'poison')).toHaveLength(1)
  })
})
