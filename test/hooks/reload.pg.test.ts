/** What is kept in memory follows the database, in every process. */
import { describe, expect, it } from 'vitest'
import { reloadHook } from '../../src/hooks/index.ts'
import { eventually } from '../support/eventually.ts'
import { openHooks } from './support/open-hooks.ts'

describe('the reload hook', () => {
  it('a thousand changes cause few reloads, one at a time, and the last one sees everything', async () => {
    const { ac, sql, another } = await openHooks()
    await sql.query('create table policies (id int)')
    const instances = [ac, another()].map((instance) => {
      const kept = { count: 0, loads: 0, most: 0 }
      let running = 0
      instance.hooks.add(
        reloadHook({
          name: 'policies',
          types: ['policy.*'],
          async reload() {
            kept.most = Math.max(kept.most, ++running)
            kept.loads++
            kept.count = (await instance.transaction((tx) => tx.query('select from policies'))).rowCount
            running--
          },
        }),
      )
      return { instance, kept }
    })
    await Promise.all(instances.map(({ instance }) => instance.start()))
    for (let n = 0; n < 1_000; n += 100) {
      await sql.query(
        `with added as (insert into policies select generate_series($1::int, $1::int + 99) returning id)
         select aftercommit.emit('policy.created', 'policy', id::text, '{}') from added`,
        [n],
      )
    }
    for (const { kept } of instances) {
      await eventually(() => kept.count === 1_000)
      expect(kept.most).toBe(1)
      expect(kept.loads).toBeLessThan(20)
    }
  })

  it('is ready once it has loaded, and a reload that fails is tried until it succeeds, not ready meanwhile', async () => {
    const { ac, emit } = await openHooks()
    let broken = false
    let loads = 0
    let cleared = 0
    ac.hooks.add(
      reloadHook({
        name: 'policies',
        debounce: '5ms',
        reload() {
          loads++
          if (broken) throw Object.assign(new Error('no'), { code: 'E_POLICY' })
        },
        clear: () => void cleared++,
      }),
    )
    await ac.start()
    expect([loads, cleared]).toEqual([1, 1])
    await eventually(() => ac.health().ready)
    broken = true
    await emit('one')
    await eventually(() => loads >= 3)
    expect(ac.health().ready).toBe(false)
    expect(ac.health().reasons.join()).toContain('hook policies')
    broken = false
    await eventually(() => ac.health().ready)
    expect(cleared).toBe(2)
  })

  it('applies one change at a time, with the image before on delete, and clears what was derived', async () => {
    const { ac } = await openHooks()
    const parameters = new Map<string, unknown>()
    let cleared = 0
    ac.hooks.add(
      reloadHook({
        name: 'parameters',
        entities: ['parameter'],
        reload: () => void parameters.set('loaded', true),
        apply(event) {
          if (event.kind === 'deleted') parameters.delete(String(event.previous?.url))
          else parameters.set(String((event.payload as { url: string }).url), event.payload)
        },
        clear: () => void cleared++,
      }),
    )
    await ac.start()
    const aggregate = { type: 'parameter', id: '1' }
    await ac.transaction((tx) => tx.emit('parameter.created', { aggregate, payload: { url: 'a' } }))
    await eventually(() => parameters.has('a'))
    await ac.transaction((tx) => tx.emit('parameter.deleted', { aggregate, payload: {}, previous: { url: 'a' } }))
    await eventually(() => !parameters.has('a'))
    expect([...parameters.keys()]).toEqual(['loaded'])
    await eventually(() => cleared === 3)
  })

  it('a change without a reload is tried until it is applied', async () => {
    const { ac, emit } = await openHooks()
    const applied: string[] = []
    let tries = 0
    ac.hooks.add(
      reloadHook({
        name: 'routes',
        apply({ id }) {
          tries++
          if (tries === 1) throw new Error('not yet')
          applied.push(id)
        },
      }),
    )
    await ac.start()
    await emit('one', { key: 'a' })
    await eventually(() => ac.hooks.status('routes').state === 'failing')
    await emit('two', { key: 'a' })
    await eventually(() => applied.length === 2)
    expect(applied).toEqual(['one', 'two'])
    await eventually(() => ac.hooks.status('routes').ready)
  })

  it('needs something to do', () => {
    expect(() => reloadHook({ name: 'nothing' })).toThrow('`reload` or `apply`')
  })
})
