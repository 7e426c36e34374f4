/**
 * Order per key survives dead letters: what comes later waits behind them and follows in order, whenever they are
 * redriven, whatever is emitted meanwhile, whoever runs the subscription and however it ends.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { GiveUp } from '../../src/subscriptions/index.ts'
import { emitMany, gate, numbered, openSubscriptions, recorder } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { expectOrderPerKey, fileLedger, startWorker } from './support/workers.ts'

beforeAll(buildPackage)

/** A subscription `sub` whose handler gives up on what is in `broken`, and waits where a gate stands. */
async function openGame() {
  const open = await openSubscriptions()
  const broken = new Set<string>()
  const gates = new Map<string, ReturnType<typeof gate>>()
  const done: string[] = []
  const seen = recorder(async ({ id }) => {
    await gates.get(id)?.passed
    if (broken.has(id)) throw new GiveUp('not now')
    done.push(id)
  })
  const subscribe = (ac = open.ac) => ac.subscribe({ id: 'sub', failingAfter: 1_000, handle: seen.handle })
  const waiting = (n: number) =>
    eventually(async () => (await open.sql.query('select from aftercommit.parked')).rowCount === n)
  /** Makes every process look at what was marked, as its next renewal would. */
  const nudge = async () => {
    const other = open.ac.subscriptions.get('other')
    await other.pause()
    await other.resume()
  }
  open.ac.subscribe({ id: 'other', handle: () => {} })
  return { ...open, broken, gates, done, seen, subscribe, waiting, nudge }
}

describe('behind a letter', () => {
  it('an event that comes while the letter is redriven follows those that waited before it', async () => {
    const { ac, emit, broken, gates, done, seen, subscribe, waiting } = await openGame()
    subscribe()
    broken.add('letter')
    await ac.start()
    for (const id of ['letter', 'second', 'third']) await emit(id, { key: 'k1' })
    await waiting(2)
    broken.clear()
    gates.set('letter', gate())
    await ac.deadLetters.redrive({})
    await seen.sees('letter', 2)
    await emit('new', { key: 'k1' })
    const { position } = await emit('elsewhere', { key: 'k2' })
    await eventually(async () => (await ac.log.status()).frontier >= position)
    gates.get('letter')!.open()
    await eventually(() => done.includes('new') && done.includes('elsewhere'))
    expect(done.filter((id) => id !== 'elsewhere')).toEqual(['letter', 'second', 'third', 'new'])
  })

  it('many follow in order, those that come meanwhile last', async () => {
    const { ac, emitMany, emit, broken, done, subscribe, waiting } = await openGame()
    subscribe()
    broken.add('letter')
    await ac.start()
    await emit('letter', { key: '0' })
    await emitMany(130, { keys: 1, prefix: 'parked-' })
    await waiting(130)
    broken.clear()
    await ac.deadLetters.redrive({})
    await emitMany(100, { keys: 1, prefix: 'new-' })
    await eventually(() => done.includes('new-100'))
    expect(done).toEqual(['letter', ...numbered(130, 'parked-'), ...numbered(100, 'new-')])
  })

  it('one that fails in its turn is the next letter, and what is behind it goes on waiting', async () => {
    const { ac, emit, broken, done, subscribe, waiting, nudge, seen } = await openGame()
    subscribe()
    broken.add('first').add('second')
    await ac.start()
    for (const id of ['first', 'second', 'third', 'fourth']) await emit(id, { key: 'k1' })
    await waiting(3)
    broken.delete('first')
    await ac.deadLetters.redrive({ eventId: 'first' })
    await seen.sees('second')
    await eventually(async () => (await ac.deadLetters.count({ eventId: 'second', status: 'dead' })) === 1)
    await nudge()
    await nudge()
    await emit('fifth', { key: 'k1' })
    await waiting(3)
    expect(done).toEqual(['first'])
    broken.clear()
    await ac.deadLetters.redrive({ status: 'dead' })
    await eventually(() => done.includes('fifth'))
    expect(done).toEqual(['first', 'second', 'third', 'fourth', 'fifth'])
  })

  it('two letters of one key, redriven together, come in order', async () => {
    const { ac, emit, broken, done, subscribe, waiting } = await openGame()
    subscribe()
    broken.add('first').add('second')
    await ac.start()
    for (const id of ['first', 'second', 'third']) await emit(id, { key: 'k1' })
    await waiting(2)
    await ac.deadLetters.discard({ eventId: 'first' })
    await eventually(async () => (await ac.deadLetters.count({ eventId: 'second', status: 'dead' })) === 1)
    broken.clear()
    await ac.deadLetters.redrive({ eventId: 'second' })
    await eventually(() => done.includes('third'))
    await emit('fourth', { key: 'k1' })
    await eventually(() => done.includes('fourth'))
    expect(done).toEqual(['second', 'third', 'fourth'])
  })

  it('many keys that wait behind a second letter do not keep another key from being redriven', async () => {
    const { ac, emitMany, emit, broken, done, subscribe, waiting } = await openGame()
    subscribe()
    for (const id of [...numbered(60, 'first-'), ...numbered(60, 'second-'), 'later']) broken.add(id)
    await ac.start()
    await emitMany(60, { keys: 60, prefix: 'first-' })
    await emitMany(60, { keys: 60, prefix: 'second-' })
    await emitMany(60, { keys: 60, prefix: 'third-' })
    await waiting(120)
    for (const id of numbered(60, 'first-')) broken.delete(id)
    await ac.deadLetters.redrive({ owner: 'sub' })
    await eventually(async () => (await ac.deadLetters.count({ status: 'dead' })) === 60)
    await emit('later', { key: 'another' })
    await eventually(async () => (await ac.deadLetters.count({ eventId: 'later', status: 'dead' })) === 1)
    broken.delete('later')
    await ac.deadLetters.redrive({ eventId: 'later' })
    await eventually(() => done.includes('later'))
    expect(done.filter((id) => id.startsWith('third-'))).toEqual([])
  })

  it('the next process knows what waits: it lets nothing of the key through', async () => {
    const { ac, emit, broken, done, subscribe, waiting, another } = await openGame()
    subscribe()
    broken.add('letter')
    await ac.start()
    await emit('letter', { key: 'k1' })
    await emit('second', { key: 'k1' })
    await waiting(1)
    await ac.stop()
    broken.clear()
    const next = another()
    subscribe(next)
    await next.start()
    await next.transaction((tx) =>
      tx.emit('lamp.lit', { id: 'third', aggregate: { type: 'lamp', id: 'k1' }, payload: {} }),
    )
    await waiting(2)
    expect(done).toEqual([])
    await next.deadLetters.redrive({})
    await eventually(() => done.length === 3)
    expect(done).toEqual(['letter', 'second', 'third'])
    await waiting(0)
  })

  it('at random: any failures, redrives and discards in any order leave every key in order and nothing behind', async () => {
    const { ac, emitMany, broken, done, seen, subscribe, waiting } = await openGame()
    subscribe()
    for (const id of numbered(400)) if (Math.random() < 0.05) broken.add(id)
    broken.add('event-1')
    await ac.start()
    const emitting = (async () => {
      for (let n = 0; n < 8; n++) {
        await emitMany(50, { keys: 8, prefix: `event-${n}-` })
        await ac.deadLetters.redrive({ status: 'dead' })
      }
    })()
    await emitMany(400, { keys: 8 })
    await emitting
    broken.clear()
    await eventually(async () => {
      await ac.deadLetters.redrive({ status: 'dead' })
      return done.length === 800
    })
    await waiting(0)
    const position = new Map(seen.calls.map((call) => [call.id, call]))
    const ended = done.map((id) => position.get(id)!)
    expect(new Set(done).size).toBe(800)
    for (const key of new Set(ended.map((call) => call.key))) {
      const positions = ended.filter((call) => call.key === key).map((call) => call.position)
      expect(positions).toEqual([...positions].sort((a, b) => (a < b ? -1 : 1)))
    }
  })
})

describe('a process that is killed', () => {
  it('while it redrives leaves nothing out and nothing out of order', async () => {
    const { url } = await testDatabase({ migrated: true })
    const sql = await connect(url)
    const ledger = fileLedger()
    const instance = { database: url }
    await emitMany(sql, 120, { keys: 3 })
    const broken = await startWorker(ledger, {
      instance,
      subscriptions: [
        { id: 'sub', retry: { maxAttempts: 1 }, behaviour: { fails: ['event-1', 'event-2', 'event-3'] } },
      ],
    })
    await eventually(async () => (await sql.query('select from aftercommit.parked')).rowCount === 117)
    broken.kill('SIGKILL')
    await broken.exited
    await sql.query(`update aftercommit.letters set status = 'redriving'`)
    for (const on of ['event-1', 'event-50', 'event-90']) {
      const dies = { on, how: 'kill', when: 'end', times: 1 } as const
      const worker = await startWorker(ledger, { instance, subscriptions: [{ id: 'sub', behaviour: { dies } }] })
      await worker.exited
    }
    await startWorker(ledger, { instance, subscriptions: [{ id: 'sub' }] })
    await ledger.reaches(120)
    expectOrderPerKey(ledger.ended())
    await eventually(async () => (await sql.query('select from aftercommit.parked')).rowCount === 0)
    await eventually(async () => {
      const { rows } = await sql.query(`select distinct status, parks from aftercommit.letters`)
      return rows.length === 1 && rows[0].status === 'resolved' && rows[0].parks === false
    })
  })
})
