/** Starting, draining and looking at subscriptions, and what is refused before anything runs. */
import { describe, expect, it } from 'vitest'
import { openLog } from '../log/support/open-log.ts'
import { eventually } from '../support/eventually.ts'
import { gate, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe('running', () => {
  it('a subscription that is added after the start runs too', async () => {
    const { ac, emit } = await openSubscriptions()
    await ac.start()
    await emit('before')
    const seen = recorder()
    ac.subscribe({ id: 'late', handle: seen.handle })
    await emit('after')
    await seen.sees('after')
    expect(seen.ids).toEqual(['before', 'after'])
  })

  it('`only` spreads subscriptions over processes', async () => {
    const { ac, another, emit } = await openSubscriptions()
    const other = another()
    const where: string[] = []
    for (const [name, each] of [
      ['first', ac],
      ['second', other],
    ] as const) {
      for (const id of ['projection:sales', 'projection:stock', 'mail']) {
        each.subscribe({ id, handle: () => void where.push(`${id} in ${name}`) })
      }
    }
    await ac.start({ only: ['projection:*'] })
    await other.start({ only: ['mail'] })
    await emit('event')
    await eventually(() => where.length === 3)
    expect(where.sort()).toEqual(['mail in second', 'projection:sales in first', 'projection:stock in first'])
  })

  it('drain works off what is there, gives the leases back, and may be called again', async () => {
    const { ac, emit, sql } = await openSubscriptions()
    const seen = recorder()
    ac.subscribe({ id: 'short', handle: seen.handle })
    await emit('first')
    expect(await ac.drain()).toMatchObject({ drained: true })
    const { rows } = await sql.query('select owner, position, clean from aftercommit.subscription_partitions')
    expect(rows).toEqual([{ owner: null, position: '1', clean: true }])
    await emit('second')
    expect(await ac.drain()).toMatchObject({ drained: true })
    expect(seen.ids).toEqual(['first', 'second'])
  })

  it('drain says so when the time was too short', async () => {
    const { ac, emit } = await openSubscriptions()
    // It stops what it began, and that waits for the call under way until its time is up.
    ac.subscribe({ id: 'slow', timeout: '300ms', retry: { initialDelay: '1h' }, handle: () => new Promise(() => {}) })
    await emit('first')
    expect(await ac.drain({ timeout: '1ms' })).toMatchObject({ drained: false })
  })

  it('a process that only emits has no connection but those of its pool, and no row among the processes', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    await emit('first')
    await emit('second')
    const { rows } = await sql.query(
      `select application_name from pg_stat_activity
        where datname = current_database() and application_name like 'aftercommit:%'`,
    )
    expect(rows).toHaveLength(1)
    expect(rows[0].application_name).toMatch(/^aftercommit:work /)
    expect((await sql.query('select from aftercommit.processes')).rowCount).toBe(0)
    expect((await ac.subscriptions.list()).length).toBe(0)
  })

  it('two hundred subscriptions have one LISTEN connection', async () => {
    const { ac, sql, emit } = await openSubscriptions()
    const seen = recorder()
    for (let n = 0; n < 200; n++) ac.subscribe({ id: `sub-${n}`, handle: seen.handle })
    await ac.start()
    await emit('first')
    await seen.sees('first', 200)
    const { rows } = await sql.query(
      `select from pg_stat_activity
        where datname = current_database() and application_name like 'aftercommit:listen %'`,
    )
    expect(rows).toHaveLength(1)
  })

  it('its handle tells status, position, lag, owner and last event', async () => {
    const { ac, emit } = await openSubscriptions()
    const blocked = gate()
    const seen = recorder(({ id }) => (id === 'third' ? blocked.passed : undefined))
    const handle = ac.subscribe({ id: 'watched', handle: seen.handle })
    await ac.start()
    for (const id of ['first', 'second', 'third', 'fourth']) await emit(id)
    await seen.sees('third')
    await eventually(async () => {
      const state = await handle.status()
      expect(state).toMatchObject({ id: 'watched', status: 'active', position: 2n, lag: 2n, lastEventId: 'second' })
      expect(state.lagSeconds).toBeGreaterThan(0)
      expect(state.owner).not.toBeNull()
      return true
    })
    blocked.open()
    await eventually(async () => (await handle.status()).lag === 0n)
    expect(await handle.status()).toMatchObject({ position: 4n, lastEventId: 'fourth', lagSeconds: 0 })
  })
})

describe('what is refused', () => {
  it('a second registration of an id in one process', async () => {
    const { ac } = await openSubscriptions()
    ac.subscribe({ id: 'same', handle: () => {} })
    expect(() => ac.subscribe({ id: 'same', handle: () => {} })).toThrow(/registered twice/)
  })

  it.each([
    [{ id: '' }, /id/],
    [{ id: 'has spaces' }, /id/],
    [{ handle: undefined }, /either `handle` or `handleBatch`/],
    [{ handleBatch: () => {} }, /either `handle` or `handleBatch`/],
    [{ handle: 'text' }, /function/],
    [{ concurrency: 0 }, /concurrency/],
    [{ concurrency: 2, transactional: true }, /transactional/],
    [{ onFailure: 'ignore' }, /onFailure/],
    [{ batchSize: 100_000 }, /batchSize/],
    [{ after: ['sub'] }, /itself/],
    [{ checkpoint: 'sometimes' }, /checkpoint/],
    [{ retry: { attempts: 3 } }, /attempts/],
    [{ timeout: 'soon' }, /timeout/],
    [{ on: ['Not A Type!'] }, /Not A Type!/],
  ])('%j', async (options, message) => {
    const { ac } = await openLog()
    const subscribe = () => ac.subscribe({ id: 'sub', handle: () => {}, ...options } as never)
    expect(subscribe).toThrow(message)
  })

  it('the handle of a subscription that nobody registered says so', async () => {
    const { ac } = await openLog()
    await expect(ac.subscriptions.get('nobody').status()).rejects.toMatchObject({ code: 'UNKNOWN_SUBSCRIPTION' })
  })
})
