/** Hooks of scope `instance`: every process hears everything, and what one of them does is no concern of the others. */
import { describe, expect, it } from 'vitest'
import { hurriedClock } from '../log/support/hurried-clock.ts'
import { eventually } from '../support/eventually.ts'
import { collectingLogger } from '../support/logger.ts'
import { ear, gate, openHooks } from './support/open-hooks.ts'

const QUICK = { maxAttempts: 2, initialDelay: '10ms', maxDelay: '20ms' } as const

describe.each([{ major: 18 }, { major: 14 }] as const)('a hook, on Postgres $major', ({ major }) => {
  it('hears in every process what is emitted from its start on, by whomever', async () => {
    const { ac, sql, emit, another } = await openHooks({ major })
    await emit('before')
    const ears = [ear(), ear()]
    const second = another()
    expect(ac.hooks.add({ name: 'lamps', scope: 'instance', handle: ears[0]!.handle })).toBe(true)
    second.hooks.add({ name: 'lamps', scope: 'instance', handle: ears[1]!.handle })
    await Promise.all([ac.start(), second.start()])
    await emit('ours')
    await sql.query(`select aftercommit.emit('lamp.lit', 'lamp', '1', '{}', id => 'psql')`)
    for (const { hears, heard } of ears) {
      await hears('psql')
      expect(heard.map(({ id }) => id)).toEqual(['ours', 'psql'])
    }
  })
})

describe('isolation', () => {
  it('one hangs, one throws, one throws at once: the fourth hears everything', async () => {
    const { logger, lines } = collectingLogger()
    const { ac, emitMany } = await openHooks({ logger })
    const good = ear()
    const hanging = ear(() => new Promise(() => {}))
    const scope = 'instance'
    ac.hooks.add({ name: 'hangs', scope, handle: hanging.handle, timeout: '50ms', retry: QUICK })
    ac.hooks.add({ name: 'rejects', scope, retry: QUICK, handle: () => Promise.reject(new Error('no')) })
    ac.hooks.add({
      name: 'throws',
      scope,
      retry: QUICK,
      handle() {
        throw new Error('no')
      },
    })
    ac.hooks.add({ name: 'works', scope, handle: good.handle })
    await ac.start()
    await emitMany(200)
    await good.hears('event-200')
    expect(good.ids).toHaveLength(200)
    await eventually(() => ac.hooks.status('hangs').failed > 0 && ac.hooks.status('throws').failed === 400)
    expect(ac.hooks.status('works')).toMatchObject({ state: 'ready', handled: 200, failed: 0, lag: 0n })
    expect(lines.join('\n')).toContain('a hook could not handle an event; the event is passed')
    const metrics = await ac.metrics()
    expect(metrics).toContain('aftercommit_hook_calls_total{hook="works",outcome="ok"} 200')
    expect(metrics).toContain('aftercommit_hook_calls_total{hook="throws",outcome="failed"} 400')
    await eventually(() => ac.health().ready)
  })

  it('a call whose time is up is told by its signal, and nothing of its key runs until it has ended', async () => {
    const { ac, emit } = await openHooks()
    const ended = gate()
    const signals: AbortSignal[] = []
    const slow = ear(({ id }, { signal }) => {
      signals.push(signal)
      return id === 'slow' ? ended.passed : undefined
    })
    const retry = { maxAttempts: 1 }
    ac.hooks.add({ name: 'slow', scope: 'instance', timeout: '30ms', retry, handle: slow.handle })
    await ac.start()
    await emit('slow', { key: 'a' })
    await emit('behind', { key: 'a' })
    await emit('beside', { key: 'b' })
    await slow.hears('beside')
    await eventually(() => signals[0]?.aborted)
    expect((signals[0]!.reason as { code: string }).code).toBe('TIMED_OUT')
    expect(ac.hooks.status('slow').failed).toBe(1)
    expect(slow.ids).toEqual(['slow', 'beside'])
    ended.open()
    await slow.hears('behind')
  })

  it('keys run side by side, at most so many, and each in order', async () => {
    const { ac, emitMany } = await openHooks()
    const running = new Map<string, number>()
    const last = new Map<string, number>()
    const faults: string[] = []
    let most = 0
    const { handle, heard } = ear(async ({ id, key }) => {
      const number = Number(id.slice('event-'.length))
      if (running.has(key)) faults.push(`${id} beside another of ${key}`)
      if (number < (last.get(key) ?? 0)) faults.push(`${id} out of order`)
      running.set(key, number)
      last.set(key, number)
      most = Math.max(most, running.size)
      await new Promise((resolve) => setTimeout(resolve, number % 5))
      running.delete(key)
    })
    ac.hooks.add({ name: 'keys', scope: 'instance', concurrency: 4, handle })
    await ac.start()
    await emitMany(400, { keys: 9 })
    await eventually(() => ac.hooks.status('keys').handled === 400)
    expect(faults).toEqual([])
    expect(most).toBe(4)
    expect(heard).toHaveLength(400)
  })

  it('an event is tried again, and what it emits carries the chain on', async () => {
    const { ac, emit } = await openHooks()
    const { handle, hears, heard } = ear(async ({ id, attempt }) => {
      if (attempt === 1) throw new Error('not yet')
      await ac.transaction((tx) => tx.emit('lamp.reported', { id: `${id}-reported`, payload: {} }))
    })
    ac.hooks.add({ name: 'again', types: ['lamp.lit'], scope: 'instance', retry: QUICK, handle })
    await ac.start()
    await emit('one')
    await eventually(() => heard.length === 2)
    const reported = await eventually(() => ac.log.get('one-reported'))
    expect(reported.metadata).toMatchObject({ causationId: 'one', correlationId: 'one', depth: 1 })
    await hears('one')
  })

  it('a hook that feeds itself is ended by the cap on causes, and told so', async () => {
    const { logger, lines } = collectingLogger()
    const { ac, emit, sql } = await openHooks({ logger, log: { maxDepth: 5 } })
    const again = (event: { id: string }) =>
      ac.transaction((tx) => tx.emit('lamp.lit', { id: `${event.id}+`, payload: {} }))
    ac.hooks.add({ name: 'loop', scope: 'instance', handle: again })
    await ac.start()
    await emit('one')
    await eventually(() => ac.hooks.status('loop').failed > 0)
    expect((await sql.query('select id from aftercommit.events')).rowCount).toBe(6)
    expect(lines.join('\n')).toContain('a hook could not handle an event')
  })
})

describe('latest wins', () => {
  it('of the events of a key that wait, only the newest is handled', async () => {
    const { ac, emit } = await openHooks()
    const { passed, open } = gate()
    const { handle, hears, heard } = ear(({ id }) => (id === 'first' ? passed : undefined))
    ac.hooks.add({ name: 'cache', scope: 'instance', latestWins: true, handle })
    await ac.start()
    await emit('first', { key: 'a' })
    await hears('first')
    for (const id of ['second', 'third', 'fourth']) await emit(id, { key: 'a' })
    await emit('other', { key: 'b' })
    await hears('other')
    open()
    await hears('fourth')
    expect(heard.filter(({ key }) => key === 'lamp/a').map(({ id, coalesced }) => [id, coalesced])).toEqual([
      ['first', 1],
      ['fourth', 3],
    ])
  })
})

describe('subscribe, then load, then serve', () => {
  it('an event that comes while it loads is handled after it, and start() waits for the load', async () => {
    const { ac, emit } = await openHooks()
    const story: string[] = []
    ac.hooks.add({
      name: 'lamps',
      scope: 'instance',
      async onStart() {
        story.push('loading')
        await emit('meanwhile')
        await emit('as well')
        expect(ac.health().ready).toBe(false)
        expect(ac.health().reasons).toContain('hook lamps has not loaded yet')
        story.push('loaded')
      },
      handle: ({ id }) => void story.push(id),
    })
    await ac.start()
    expect(story.slice(0, 2)).toEqual(['loading', 'loaded'])
    await eventually(() => story.length === 4)
    expect(story).toEqual(['loading', 'loaded', 'meanwhile', 'as well'])
    expect(ac.hooks.status('lamps')).toMatchObject({ state: 'ready', ready: true, reason: null })
    await eventually(() => ac.health().ready)
  })

  it('one that cannot load keeps the instance from being ready, is tried again, and holds up nobody', async () => {
    const { ac, emit } = await openHooks()
    const works = ear()
    let broken = true
    let loads = 0
    const mended = ear()
    ac.hooks.add({ name: 'works', scope: 'instance', handle: works.handle })
    ac.hooks.add({
      name: 'broken',
      scope: 'instance',
      handle: mended.handle,
      onStart() {
        loads++
        if (broken) throw Object.assign(new Error('secret'), { code: 'E_POLICY' })
      },
    })
    await ac.start()
    await emit('one')
    await works.hears('one')
    const { ready, live, reasons } = ac.health()
    expect({ ready, live }).toEqual({ ready: false, live: true })
    expect(reasons.join()).toMatch(/hook broken could not load \(E_POLICY\) and tries again in/)
    broken = false
    await eventually(() => ac.health().ready)
    expect(loads).toBeGreaterThan(1)
    await emit('two')
    await mended.hears('two')
  })

  it('one that hangs while it loads does not keep the instance from being stopped', async () => {
    const { ac } = await openHooks()
    const seen = gate()
    let told = false
    ac.hooks.add({
      name: 'hangs',
      scope: 'instance',
      handle() {},
      onStart: ({ signal }) => {
        signal.addEventListener('abort', () => {
          told = true
        })
        seen.open()
        return new Promise(() => {})
      },
    })
    const starting = expect(ac.start()).rejects.toThrow('stopped')
    await seen.passed
    await ac.stop()
    await starting
    expect(told).toBe(true)
  })
})

describe('a lost place', () => {
  it('by falling far behind: it loads anew and goes on from there', async () => {
    const { ac, emit, emitMany } = await openHooks()
    const { passed, open } = gate()
    const reasons: string[] = []
    const { handle, hears, heard } = ear(({ id }) => (id === 'first' ? passed : undefined))
    ac.hooks.add({
      name: 'cache',
      scope: 'instance',
      onStart: () => void reasons.push('start'),
      onResync: ({ reason }) => void reasons.push(reason),
      handle: (event, context) => {
        context.signal.addEventListener('abort', open)
        return handle(event, context)
      },
      key: () => 'all',
    })
    await ac.start()
    await emit('first')
    await hears('first')
    await emitMany(12_000)
    await eventually(() => reasons.length === 2)
    expect(reasons).toEqual(['start', 'lag'])
    await eventually(() => ac.health().ready)
    await emit('last')
    await hears('last')
    expect(heard.length).toBeLessThan(12_000)
    expect(await ac.metrics()).toContain('aftercommit_hook_resyncs_total{hook="cache"} 1')
  })

  it('without anything to load nothing is passed over, however far behind it is', async () => {
    const { ac, emit, emitMany } = await openHooks()
    const { passed, open } = gate()
    const all = ear(({ id }) => (id === 'first' ? passed : undefined))
    ac.hooks.add({ name: 'all', scope: 'instance', key: () => 'all', handle: all.handle })
    await ac.start()
    await emit('first')
    await all.hears('first')
    await emitMany(12_000)
    open()
    await all.hears('event-12000')
    expect(all.ids).toHaveLength(12_001)
  })

  it('by a fork of history: it loads anew', async () => {
    const { ac, sql, emit } = await openHooks({ clock: hurriedClock(20) })
    const reasons: string[] = []
    const { handle, hears } = ear()
    ac.hooks.add({ name: 'cache', scope: 'instance', onStart: ({ reason }) => void reasons.push(reason), handle })
    await ac.start()
    await emit('one')
    await hears('one')
    await eventually(
      async () => (await sql.query('select from aftercommit.log_state where frontier > 0')).rowCount === 1,
    )
    await sql.query(
      'set session_replication_role = replica; truncate aftercommit.events; reset session_replication_role',
    )
    await eventually(() => reasons.length === 2)
    expect(reasons).toEqual(['start', 'epoch'])
    await eventually(() => ac.health().ready)
    await emit('two')
    await hears('two')
  })

  it('by an event that it cannot handle: it loads anew instead of passing it', async () => {
    const { ac, emit } = await openHooks()
    const loads: string[] = []
    let poison = true
    const { handle, hears } = ear(({ id }) => {
      if (id === 'poison' && poison) throw new Error('no')
    })
    ac.hooks.add({
      name: 'cache',
      scope: 'instance',
      retry: QUICK,
      handle,
      onStart: ({ reason }) => {
        loads.push(reason)
        poison = false
      },
    })
    await ac.start()
    poison = true
    await emit('poison')
    await eventually(() => loads.length === 2)
    expect(loads).toEqual(['start', 'failure'])
    await emit('next')
    await hears('next')
  })
})

describe('the registry', () => {
  it('counts, lists, refuses a name twice, and ends what is removed', async () => {
    const { ac, emit } = await openHooks()
    const first = ear()
    const second = ear()
    let stopped = 0
    ac.hooks.add({ name: 'one', scope: 'instance', handle: first.handle, onStop: () => void stopped++ })
    ac.hooks.add({ name: 'two', scope: 'instance', handle: second.handle })
    expect(() => ac.hooks.add({ name: 'two', scope: 'instance', handle() {} })).toThrow('twice')
    expect(ac.hooks.count()).toBe(2)
    await ac.start()
    expect(await ac.hooks.remove('one')).toBe(true)
    expect(await ac.hooks.remove('one')).toBe(false)
    expect(stopped).toBe(1)
    expect(ac.hooks.list().map(({ name }) => name)).toEqual(['two'])
    expect(() => ac.hooks.status('one')).toThrow('no hook "one"')
    await emit('x')
    await second.hears('x')
    expect(first.ids).toEqual([])
    await eventually(() => ac.health().ready)
    ac.hooks.add({ name: 'one', scope: 'instance', handle: first.handle })
    await eventually(() => ac.hooks.status('one').ready)
    await emit('y')
    await first.hears('y')
  })

  it('does not register what is disabled: no hook, no count, no metric', async () => {
    const { ac, emit } = await openHooks()
    const off = ear()
    const on = ear()
    expect(ac.hooks.add({ name: 'off', scope: 'instance', enabled: false, handle: off.handle })).toBe(false)
    expect(ac.hooks.add({ name: 'licence', scope: 'cluster', enabled: () => false, handle: off.handle })).toBe(false)
    expect(ac.hooks.add({ name: 'on', scope: 'instance', enabled: () => true, handle: on.handle })).toBe(true)
    expect(ac.hooks.count()).toBe(1)
    await ac.start()
    await emit('x')
    await on.hears('x')
    expect(off.ids).toEqual([])
    expect(await ac.metrics()).not.toMatch(/hook="(off|licence)"/)
    expect((await ac.subscriptions.list()).map(({ id }) => id)).toEqual([])
  })

  it('ends everything with the instance: calls are told, onStop is called, a failing one is no obstacle', async () => {
    const { ac, emit } = await openHooks()
    const story: string[] = []
    const { handle, hears } = ear(
      (_, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            story.push('told')
            resolve()
          })
        }),
    )
    ac.hooks.add({ name: 'busy', scope: 'instance', handle, onStop: () => void story.push('stopped') })
    ac.hooks.add({
      name: 'bad',
      scope: 'instance',
      handle() {},
      onStop: () => {
        throw new Error('no')
      },
    })
    await ac.start()
    await emit('x')
    await hears('x')
    await ac.stop()
    expect(story).toEqual(['told', 'stopped'])
  })
})
