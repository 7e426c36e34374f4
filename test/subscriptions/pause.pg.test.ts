/** A pause holds everywhere once it has been acknowledged, and lasts until somebody resumes. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { gate, openSubscriptions, recorder } from './support/open-subscriptions.ts'

describe('pause', () => {
  it('resolves when calls under way have ended, and no new one starts after it', async () => {
    const { ac, emit } = await openSubscriptions()
    const inside = gate()
    const blocked = gate()
    const ends: string[] = []
    const seen = recorder(async ({ id }) => {
      if (id === 'first') {
        inside.open()
        await blocked.passed
      }
      ends.push(id)
    })
    const handle = ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('first')
    await emit('second')
    await inside.passed
    let acknowledged = false
    const pausing = handle.pause({ who: 'me' }).then(() => {
      acknowledged = true
    })
    await eventually(async () => (await handle.status()).status === 'paused')
    expect(acknowledged).toBe(false)
    blocked.open()
    await pausing
    // Until it is acknowledged the owner may go on; from then on everything that was begun has ended.
    const begun = [...seen.ids]
    expect(ends).toEqual(begun)
    await emit('third')
    // The process is alive and reads: another subscription of it handles the event.
    const other = recorder()
    ac.subscribe({ id: 'other', handle: other.handle })
    await other.sees('third')
    expect(seen.ids).toEqual(begun)
    await handle.resume({ who: 'me' })
    await seen.sees('third')
    expect(seen.ids).toEqual(['first', 'second', 'third'])
  })

  it('by another process holds for the owner, with lanes under way', async () => {
    const { ac, emitMany, another } = await openSubscriptions()
    const blocked = gate()
    let running = 0
    const seen = recorder(async () => {
      running++
      await (seen.calls.length > 50 ? blocked.passed : new Promise((resolve) => setTimeout(resolve, 1)))
      running--
    })
    ac.subscribe({ id: 'sub', concurrency: 5, handle: seen.handle })
    await emitMany(200, { keys: 50 })
    await ac.start()
    await eventually(() => seen.calls.length === 55)
    const operator = another().subscriptions.get('sub')
    const pausing = operator.pause()
    await eventually(async () => (await operator.status()).status === 'paused')
    blocked.open()
    await pausing
    // How far it came until then is a matter of speed, so that something is left to hold back.
    const atPause = seen.calls.length
    expect(running).toBe(0)
    await emitMany(20, { prefix: 'held-back-' })
    const other = recorder()
    ac.subscribe({ id: 'other', handle: other.handle })
    await other.sees('held-back-20')
    expect(seen.calls.length).toBe(atPause)
    await operator.resume()
    await eventually(() => new Set(seen.ids).size === 220)
    expect(seen.calls).toHaveLength(220)
  })

  it('survives a restart', async () => {
    const { ac, emit, another } = await openSubscriptions()
    const seen = recorder()
    const handle = ac.subscribe({ id: 'sub', handle: seen.handle })
    await ac.start()
    await emit('first')
    await seen.sees('first')
    await handle.pause()
    await ac.stop()
    const next = another()
    const [again, other] = [recorder(), recorder()]
    const resumed = next.subscribe({ id: 'sub', handle: again.handle })
    next.subscribe({ id: 'other', handle: other.handle })
    await next.start()
    await next.transaction((tx) => tx.emit('lamp.lit', { id: 'second', payload: {} }))
    await other.sees('second')
    expect(again.ids).toEqual([])
    expect(await resumed.status()).toMatchObject({ status: 'paused', owner: null })
    await resumed.resume()
    await again.sees('second')
    expect(again.ids).toEqual(['second'])
  })

  it('and resume are written down with who and why', async () => {
    const { ac, sql } = await openSubscriptions()
    const handle = ac.subscribe({ id: 'sub', handle: () => {} })
    await ac.start()
    await eventually(() => handle.status())
    await handle.pause({ who: 'olga', reason: 'the mail server is down' })
    await handle.resume({ who: 'olga' })
    const { rows } = await sql.query('select who, what, reason from aftercommit.audit order by at')
    expect(rows).toEqual([
      { who: 'olga', what: 'subscription.pause', reason: 'the mail server is down' },
      { who: 'olga', what: 'subscription.resume', reason: null },
    ])
  })
})
