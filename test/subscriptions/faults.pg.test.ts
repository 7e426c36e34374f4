/**
 * Errors with a SQLSTATE that a handler's own statement raises: they count as attempts, so that nothing is repeated for
 * ever, and what is repeated without counting shows its reason.
 */
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { gate, openSubscriptions, QUICK, recorder } from './support/open-subscriptions.ts'

function sqlError(code: string): Error {
  return Object.assign(new Error(`refused with ${code}`), { code })
}

describe('a statement of a handler that always fails', () => {
  it('with 57014, a statement timeout, is a dead letter after four attempts, on a connection of its own and on ours', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    const attempts: number[] = []
    ac.subscribe({
      id: 'own-connection',
      retry: QUICK,
      async handle(_, { attempt }) {
        attempts.push(attempt)
        await sql.query("set statement_timeout = '20ms'")
        await sql.query('select pg_sleep(10)')
      },
    })
    ac.subscribe({
      id: 'our-transaction',
      transactional: true,
      retry: QUICK,
      async handle(_, { tx }) {
        await tx.query("set local statement_timeout = '20ms'")
        await tx.query('select pg_sleep(10)')
      },
    })
    await emit('poison')
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(attempts).toEqual([1, 2, 3, 4])
    const letters = await ac.deadLetters.list()
    expect(letters.map(({ owner, attempts, error }) => [owner, attempts, error.code]).sort()).toEqual([
      ['our-transaction', 4, '57014'],
      ['own-connection', 4, '57014'],
    ])
  })

  it('with 55P03, a lock that is never free, is a dead letter, and the letter says why', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    await sql.query('create table busy (id int)')
    await sql.query('begin; lock table busy')
    ac.subscribe({
      id: 'locked',
      transactional: true,
      retry: QUICK,
      async handle(_, { tx }) {
        await tx.query("set local lock_timeout = '10ms'")
        await tx.query('insert into busy values (1)')
      },
    })
    await emit('poison')
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(await ac.deadLetters.list()).toMatchObject([{ owner: 'locked', attempts: 4, error: { code: '55P03' } }])
    await sql.query('rollback')
  })

  it('with 57P01 while other events of the process are handled is a dead letter: the server is well', async () => {
    const { ac, emit } = await openSubscriptions()
    const seen = recorder(({ id }) => {
      if (id === 'poison') throw sqlError('57P01')
    })
    ac.subscribe({ id: 'sub', retry: QUICK, handle: seen.handle })
    await ac.start()
    await emit('poison', { key: 'poison' })
    await eventually(async () => {
      await emit(`other-${seen.calls.length}-${Math.random()}`, { key: 'other' })
      return (await ac.deadLetters.count()) === 1
    })
    expect(await ac.deadLetters.list()).toMatchObject([{ owner: 'sub', attempts: 4, error: { code: '57P01' } }])
  })
})

describe('an event that is repeated without counting', () => {
  it('shows its reason in the status, until the event is handled', async () => {
    const { ac, emit } = await openSubscriptions()
    let broken = true
    const seen = recorder(() => {
      if (broken) throw sqlError('40001')
    })
    const handle = ac.subscribe({ id: 'sub', retry: QUICK, handle: seen.handle })
    await ac.start()
    await emit('conflicting')
    await eventually(async () => (await handle.status()).reason !== null)
    expect((await handle.status()).reason).toBe('event conflicting is repeated: 40001: refused with 40001')
    broken = false
    await eventually(async () => (await handle.status()).reason === null)
    expect(await ac.deadLetters.count()).toBe(0)
  })
})

it('a projection whose `apply` throws an error with a SQLSTATE parks the event after four attempts', async () => {
  const { ac, emit } = await openSubscriptions()
  ac.project({
    id: 'lamps',
    retry: QUICK,
    apply() {
      throw sqlError('53200')
    },
  })
  await emit('poison')
  expect(await ac.drain()).toMatchObject({ drained: true })
  expect(await ac.deadLetters.list()).toMatchObject([{ owner: 'lamps', attempts: 4, error: { code: '53200' } }])
})

it('a subscription that stopped stays stopped when a redriven event that was repeated is handled afterwards', async () => {
  const { ac, another, emit } = await openSubscriptions()
  const parking = another()
  parking.subscribe({
    id: 'sub',
    retry: { maxAttempts: 1 },
    handle() {
      throw new Error('no')
    },
  })
  await emit('letter', { key: 'letter' })
  await parking.drain()
  await parking.stop()

  const [poisonTried, stopped] = [gate(), gate()]
  let conflicts = 0
  const strict = another()
  strict.subscribe({
    id: 'sub',
    onFailure: 'stop',
    concurrency: 2,
    retry: { maxAttempts: 2, initialDelay: '3s', maxDelay: '3s' },
    async handle({ id }) {
      if (id === 'poison') {
        poisonTried.open()
        throw new Error('cannot be handled')
      }
      if (++conflicts <= 3) throw sqlError('40001')
      await stopped.passed
    },
  })
  const handle = ac.subscriptions.get('sub')
  await strict.start()
  await emit('poison', { key: 'poison' })
  await poisonTried.passed
  await ac.deadLetters.redrive({ owner: 'sub' })
  await eventually(async () => (await handle.status()).status === 'stopped')
  expect(conflicts).toBe(4)
  stopped.open()
  await eventually(async () => (await ac.deadLetters.list())[0]?.status === 'resolved')
  await strict.stop()
  expect(await handle.status()).toMatchObject({ status: 'stopped', reason: expect.stringContaining('poison') })
})
