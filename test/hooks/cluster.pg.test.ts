/** Hooks of scope `cluster`: once in the whole cluster, durably. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { ear, openHooks } from './support/open-hooks.ts'

const QUICK = { maxAttempts: 2, initialDelay: '10ms', maxDelay: '20ms' } as const

describe('a hook of the cluster', () => {
  it('handles each event once, whatever the number of processes', async () => {
    const { ac, another, emitMany } = await openHooks()
    const ears = [ear(), ear(), ear()]
    const instances = [ac, another(), another()]
    for (const [at, instance] of instances.entries()) {
      instance.hooks.add({ name: 'mail', types: ['lamp.*'], scope: 'cluster', handle: ears[at]!.handle })
    }
    await Promise.all(instances.map((instance) => instance.start()))
    await emitMany(100)
    await eventually(() => ears.flatMap(({ ids }) => ids).length >= 100)
    const ids = ears.flatMap((one) => one.ids)
    expect(new Set(ids).size).toBe(100)
    expect(ids).toHaveLength(100)
    expect((await ac.subscriptions.list()).map(({ id }) => id)).toEqual(['hook:mail'])
  })

  it('begins at the head, goes on where it was after a restart, and passes what its filter does not want', async () => {
    const { ac, another, emit } = await openHooks()
    const handler = ear()
    const hook = { name: 'mail', kinds: ['created'], scope: 'cluster', handle: handler.handle } as const
    await emit('before', { type: 'lamp.created' })
    ac.hooks.add(hook)
    await ac.start()
    await emit('one', { type: 'lamp.created' })
    await emit('other', { type: 'lamp.lit' })
    await handler.hears('one')
    await ac.stop()
    const second = another()
    await second.transaction((tx) => tx.emit('lamp.created', { id: 'between', payload: {} }))
    second.hooks.add(hook)
    await second.start()
    await handler.hears('between')
    expect(handler.ids).toEqual(['one', 'between'])
  })

  it('makes dead letters of what it cannot handle, with its attempts and its idempotency key', async () => {
    const { ac, emit } = await openHooks()
    const keys = new Set<string>()
    const { handle, heard, hears } = ear(({ id }, { idempotencyKey }) => {
      keys.add(idempotencyKey)
      if (id === 'bad') throw new Error('no')
    })
    ac.hooks.add({ name: 'mail', scope: 'cluster', retry: QUICK, handle })
    await ac.start()
    await emit('bad', { key: 'a' })
    await emit('good', { key: 'b' })
    await hears('good')
    const [letter] = await eventually(async () => {
      const letters = await ac.deadLetters.list()
      return letters.length > 0 && letters
    })
    expect(letter).toMatchObject({ owner: 'hook:mail', event: { id: 'bad' }, attempts: 2 })
    expect(heard.filter(({ id }) => id === 'bad').map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(keys).toEqual(new Set(['hook:mail/bad', 'hook:mail/good']))
    expect(ac.hooks.status('mail')).toMatchObject({ scope: 'cluster', ready: true, handled: 1, failed: 2 })
  })

  it('takes part once its onStart has succeeded; until then the process is not ready', async () => {
    const { ac, emit } = await openHooks()
    const handler = ear()
    let broken = true
    let tries = 0
    ac.hooks.add({
      name: 'mail',
      scope: 'cluster',
      handle: handler.handle,
      onStart() {
        tries++
        if (broken) throw Object.assign(new Error('no'), { code: 'E_SMTP' })
      },
    })
    await ac.start()
    expect(ac.health().reasons.join()).toContain('hook mail could not start (E_SMTP)')
    broken = false
    await eventually(() => ac.hooks.status('mail').ready)
    await eventually(async () => (await ac.subscriptions.list()).length === 1)
    await emit('one')
    await handler.hears('one')
    expect(tries).toBeGreaterThan(1)
  })

  it('writes once through its transaction', async () => {
    const { ac, sql, emitMany } = await openHooks()
    await sql.query('create table effects (id text)')
    ac.hooks.add({
      name: 'writer',
      scope: 'cluster',
      transactional: true,
      async handle(event, { tx }) {
        const { query } = tx as { query(text: string, values: string[]): Promise<unknown> }
        await query('insert into effects values ($1)', [event.id])
      },
    })
    await ac.start()
    await emitMany(20)
    await eventually(async () => (await sql.query('select from effects')).rowCount === 20)
  })

  it('ends here when it is removed, and is taken over elsewhere', async () => {
    const { ac, another, emit } = await openHooks()
    const [mine, other] = [ear(), ear()]
    const second = another()
    ac.hooks.add({ name: 'mail', scope: 'cluster', handle: mine.handle })
    await ac.start()
    await emit('one')
    await mine.hears('one')
    second.hooks.add({ name: 'mail', scope: 'cluster', handle: other.handle })
    await second.start()
    await ac.hooks.remove('mail')
    expect(ac.hooks.count()).toBe(0)
    await emit('two')
    await other.hears('two')
    expect(mine.ids).toEqual(['one'])
  })
})
