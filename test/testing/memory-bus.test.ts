import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { defineEvents, type Emit, payloadAs, runWithCause } from '../../src/index.ts'
import { RetryAfter } from '../../src/subscriptions/index.ts'
import { memoryBus } from '../../src/testing/index.ts'

const placed = (id: string, payload: unknown = {}) => ({ aggregate: { type: 'order', id }, payload })

describe('what was emitted', () => {
  it('is kept and can be asked for by type, by aggregate and by number', async () => {
    const bus = memoryBus()
    await bus.emit('order.placed', placed('1'))
    await bus.emit('order.paid', placed('2'))
    await bus.emit('order.placed', placed('3'))
    expect(bus.eventCount()).toBe(3)
    expect(bus.publishedEvents().map(({ position }) => position)).toEqual([1n, 2n, 3n])
    expect(bus.eventsOfType('order.placed').map(({ aggregateId }) => aggregateId)).toEqual(['1', '3'])
    expect(bus.eventsForAggregate('order', '2').map(({ type }) => type)).toEqual(['order.paid'])
    expect(bus.eventsForAggregate('invoice', '2')).toEqual([])
    expect([bus.hasEvent('order.paid'), bus.hasEvent('order.shipped')]).toEqual([true, false])
  })

  it('is forgotten by clear, while subscriptions stay', async () => {
    const bus = memoryBus()
    const seen: string[] = []
    bus.subscribe({
      id: 'all',
      retry: { maxAttempts: 1 },
      handle(event) {
        seen.push(event.type)
        if (event.type === 'order.placed') throw new Error('no')
      },
    })
    await bus.emit('order.placed', placed('1'))
    await bus.emit('order.paid', placed('1'))
    expect([bus.eventCount(), bus.errors.length, await bus.deadLetters.count(), bus.parkedKeys().length]).toEqual([
      2, 1, 1, 1,
    ])
    bus.clear()
    expect([bus.eventCount(), bus.errors.length, await bus.deadLetters.count(), bus.parkedKeys().length]).toEqual([
      0, 0, 0, 0,
    ])
    await bus.emit('order.paid', placed('1'))
    expect(seen).toEqual(['order.placed', 'order.paid'])
  })

  it('is checked as it is in production: payloads, names and limits', async () => {
    const events = defineEvents({ 'order.placed': z.object({ total: z.coerce.number() }) })
    const bus = memoryBus({ events })
    await expect(bus.emit('order.placed', { payload: { total: 'many' } })).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
    })
    await expect(bus.emit('order.plaecd' as never, { payload: {} as never })).rejects.toMatchObject({
      code: 'UNKNOWN_EVENT',
    })
    await bus.emit('order.placed', { payload: { total: '12' } })
    const [event] = bus.eventsOfType('order.placed')
    expect(event!.payload).toEqual({ total: 12 })
    expectTypeOf(event!.payload).toEqualTypeOf<{ total: number }>()
    await expect(memoryBus().emit('Order Placed', { payload: {} })).rejects.toMatchObject({ code: 'BAD_EVENT_NAME' })
    await expect(memoryBus().emit('a.b', { payload: 'x'.repeat(2 ** 21) })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    })
  })

  it('is a copy: changing what was handed over changes nothing', async () => {
    const bus = memoryBus()
    const payload = { lines: [1] }
    await bus.emit('order.placed', { payload })
    payload.lines.push(2)
    expect(bus.publishedEvents()[0]!.payload).toEqual({ lines: [1] })
  })

  it('shows a command handler that emits through the port it is given', async () => {
    const openSession = async (emit: Emit<typeof events>, userId: string, title: string) => {
      await emit('session.created', {
        aggregate: { type: 'session', id: 's-1' },
        payload: { title },
        metadata: { userId },
      })
    }
    const events = defineEvents({ 'session.created': z.object({ title: z.string() }) })
    const bus = memoryBus({ events })
    await openSession(bus.emit, 'user-1', 'Career decision')
    const [event] = bus.eventsOfType('session.created')
    expect(payloadAs(z.object({ title: z.string() }))(event!)).toEqual({ title: 'Career decision' })
    expect([event!.aggregateId, event!.metadata.userId]).toEqual(['s-1', 'user-1'])
  })
})

describe('delivery in memory', () => {
  it('is over when emit returns: every handler, in the order of registration, event by event', async () => {
    const bus = memoryBus()
    const seen: string[] = []
    for (const id of ['first', 'second', 'third']) {
      bus.subscribe({
        id,
        async handle(event) {
          await Promise.resolve()
          seen.push(`${id} ${event.position}`)
        },
      })
    }
    await bus.emit([
      { type: 'a.b', payload: 1 },
      { type: 'a.b', payload: 2 },
    ])
    expect(seen).toEqual(['first 1', 'second 1', 'third 1', 'first 2', 'second 2', 'third 2'])
  })

  it('queues what a handler emits behind what is there, and has delivered all of it when the outer emit returns', async () => {
    const bus = memoryBus()
    const seen: string[] = []
    bus.subscribe({
      id: 'starter',
      on: ['a.started'],
      async handle(event) {
        seen.push(`starter ${event.payload}`)
        await bus.emit('a.followed', { payload: `${event.payload}.1` })
        await bus.emit('a.followed', { payload: `${event.payload}.2` })
        seen.push(`starter ${event.payload} done`)
      },
    })
    bus.subscribe({ id: 'follower', on: ['a.followed'], handle: (event) => seen.push(`follower ${event.payload}`) })
    await bus.emit([
      { type: 'a.started', payload: 'x' },
      { type: 'a.started', payload: 'y' },
    ])
    expect(seen).toEqual([
      'starter x',
      'starter x done',
      'starter y',
      'starter y done',
      'follower x.1',
      'follower x.2',
      'follower y.1',
      'follower y.2',
    ])
  })

  it('lets two buses feed each other without waiting for themselves', async () => {
    const [left, right] = [memoryBus(), memoryBus()]
    const seen: string[] = []
    left.subscribe({
      id: 'to-right',
      async handle(event) {
        seen.push(`left ${event.payload}`)
        if (Number(event.payload) < 3) await right.emit('a.b', { payload: Number(event.payload) + 1 })
      },
    })
    right.subscribe({
      id: 'to-left',
      async handle(event) {
        seen.push(`right ${event.payload}`)
        await left.emit('a.b', { payload: Number(event.payload) + 1 })
      },
    })
    await left.emit('a.b', { payload: 1 })
    expect(seen).toEqual(['left 1', 'right 2', 'left 3'])
  })

  it('waits for its own event when several emit at once', async () => {
    const bus = memoryBus()
    const seen = new Set<unknown>()
    bus.subscribe({
      id: 'slow',
      async handle(event) {
        await new Promise(setImmediate)
        seen.add(event.payload)
      },
    })
    await Promise.all(
      [1, 2, 3].map(async (n) => {
        await bus.emit('a.b', { payload: n })
        expect(seen.has(n)).toBe(true)
      }),
    )
  })

  it('begins a subscription made by a handler, with what was emitted before', async () => {
    const bus = memoryBus()
    const seen: string[] = []
    bus.subscribe({
      id: 'maker',
      on: ['a.first'],
      handle: () => bus.subscribe({ id: 'made', handle: (event) => seen.push(event.type) }),
    })
    await bus.emit('a.first', { payload: null })
    await bus.emit('a.second', { payload: null })
    expect(seen).toEqual(['a.first', 'a.second'])
  })

  it('hands history to a subscription when asked to', async () => {
    const bus = memoryBus()
    const seen: unknown[] = []
    await bus.emit('a.b', { payload: 1 })
    bus.subscribe({ id: 'late', handle: (event) => seen.push(event.payload) })
    expect(seen).toEqual([])
    expect(await bus.drain()).toEqual({ drained: true, head: 1n })
    expect(seen).toEqual([1])
  })
})

describe('failures in memory', () => {
  it('never reach the emitter; each failed try is in errors', async () => {
    const bus = memoryBus()
    bus.subscribe({
      id: 'broken',
      retry: { maxAttempts: 2, initialDelay: '10s', maxDelay: '60s' },
      handle() {
        throw new Error('no')
      },
    })
    await bus.emit('a.b', { payload: null })
    const told = bus.errors.map(({ subscription, event, error, attempt, outcome }) => {
      return [subscription, event.type, (error as Error).message, attempt, outcome]
    })
    expect(told).toEqual([
      ['broken', 'a.b', 'no', 1, 'retry'],
      ['broken', 'a.b', 'no', 2, 'dead'],
    ])
  })

  it('take no time: the clock of the bus moves on by each delay', async () => {
    const bus = memoryBus()
    const times: number[] = []
    bus.subscribe({
      id: 'patient',
      handle(_, { attempt }) {
        times.push(bus.clock.monotonic())
        if (attempt === 2) throw new RetryAfter('1h')
        throw new Error('no')
      },
    })
    await bus.emit('a.b', { payload: null })
    expect(times).toEqual([0, 1_000, 1_000 + 3_600_000, 1_000 + 3_600_000 + 4_000])
    const [letter] = await bus.deadLetters.list()
    expect(letter!.lastAttemptAt.getTime() - letter!.firstAttemptAt.getTime()).toBe(times.at(-1))
  })

  it('include a handler that does not end in time, which is told by its signal', async () => {
    const bus = memoryBus()
    let signal: AbortSignal | undefined
    let begun: () => void
    const started = new Promise<void>((resolve) => {
      begun = resolve
    })
    bus.subscribe({
      id: 'hanging',
      timeout: '5s',
      retry: { maxAttempts: 1 },
      handle(_, context) {
        signal = context.signal
        begun()
        return new Promise(() => {})
      },
    })
    const emitted = bus.emit('a.b', { payload: null })
    await started
    await bus.clock.advance(5_000)
    await emitted
    expect(signal!.aborted).toBe(true)
    expect((await bus.deadLetters.list())[0]!.error.code).toBe('TIMED_OUT')
    expect(bus.clock.timers).toBe(0)
  })

  it('by a conflict with another transaction do not count nine times in a row, then the event is a dead letter', async () => {
    const bus = memoryBus()
    let calls = 0
    bus.subscribe({
      id: 'unlucky',
      retry: { maxAttempts: 1 },
      handle() {
        calls++
        throw Object.assign(new Error('try again'), { code: '40001' })
      },
    })
    await bus.emit('a.b', { payload: null })
    expect(await bus.drain()).toEqual({ drained: true, head: 1n })
    expect(calls).toBe(10)
    expect(await bus.deadLetters.count()).toBe(1)
  })

  it('show which keys wait, and for what', async () => {
    const bus = memoryBus()
    bus.subscribe({
      id: 'broken',
      on: ['order.*'],
      retry: { maxAttempts: 1 },
      handle() {
        throw new Error('no')
      },
    })
    await bus.emit('order.placed', placed('1'))
    await bus.emit('order.paid', placed('1'))
    const [parked, ...others] = bus.parkedKeys()
    expect([parked!.subscription, parked!.key, parked!.events.map(({ type }) => type), others]).toEqual([
      'broken',
      'order/1',
      ['order.paid'],
      [],
    ])
  })
})

describe('transactions in memory', () => {
  const events = defineEvents({ 'a.b': z.number() }, { streams: ['account'] })
  const account = { aggregate: { type: 'account', id: '1' } }

  it('hold back what was numbered after them, as the log does', async () => {
    const bus = memoryBus()
    const seen: unknown[] = []
    bus.subscribe({ id: 'all', handle: (event) => seen.push(event.payload) })
    await bus.transaction(async (tx) => {
      await tx.emit('a.b', { payload: 'inside' })
      await bus.emit('a.b', { payload: 'beside' })
      expect(seen).toEqual([])
    })
    expect(seen).toEqual(['inside', 'beside'])
  })

  it('let go of what they held back when they fail', async () => {
    const bus = memoryBus()
    const seen: unknown[] = []
    bus.subscribe({ id: 'all', handle: (event) => seen.push(event.payload) })
    const failing = bus.transaction(async (tx) => {
      await tx.emit('a.b', { payload: 'inside' })
      await bus.emit('a.b', { payload: 'beside' })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(seen).toEqual(['beside'])
    expect(bus.publishedEvents().map(({ position }) => position)).toEqual([2n])
  })

  it('undo a savepoint alone, and run hooks after commit only', async () => {
    const bus = memoryBus({ events })
    const hooks: string[] = []
    await bus.transaction(async (tx) => {
      tx.onCommit(() => hooks.push('kept'))
      await tx.emit('a.b', { payload: 1 })
      const undone = tx.savepoint(async () => {
        tx.onCommit(() => hooks.push('undone'))
        await tx.emit('a.b', { ...account, payload: 2, expectedVersion: 7 })
      })
      await expect(undone).rejects.toMatchObject({ code: 'VERSION_CONFLICT' })
      await tx.emit('a.b', { payload: 3 })
      expect(hooks).toEqual([])
    })
    expect(bus.publishedEvents().map(({ payload }) => payload)).toEqual([1, 3])
    expect(hooks).toEqual(['kept'])
  })

  it('cannot be committed after a failed emit that was swallowed', async () => {
    const bus = memoryBus({ events })
    const swallowing = bus.transaction(async (tx) => {
      await tx.emit('a.b', { payload: 1 })
      await tx.emit('a.b', { ...account, payload: 2, expectedVersion: 7 }).catch(() => {})
    })
    await expect(swallowing).rejects.toMatchObject({ code: 'TX_ABORTED' })
    expect(bus.eventCount()).toBe(0)
  })

  it('refuse to be used after their end', async () => {
    const bus = memoryBus()
    const escaped = await bus.transaction(async (tx) => tx)
    await expect(escaped.emit('a.b', { payload: 1 })).rejects.toMatchObject({ code: 'TX_ENDED' })
    expect(() => escaped.onCommit(() => {})).toThrow(expect.objectContaining({ code: 'TX_ENDED' }))
  })

  it('that meet in a stream: the one that expected otherwise fails whole', async () => {
    const bus = memoryBus({ events })
    const late = bus.transaction(async (tx) => {
      await tx.emit('a.b', { payload: 0 })
      await tx.emit('a.b', { ...account, payload: 1, expectedVersion: 0 })
      await bus.emit('a.b', { ...account, payload: 2, expectedVersion: 0 })
    })
    await expect(late).rejects.toMatchObject({ code: 'VERSION_CONFLICT', expected: 0, found: 1 })
    expect(bus.publishedEvents().map(({ payload, version }) => [payload, version])).toEqual([[2, 1]])
  })

  it('take the chain of the call they are in', async () => {
    const bus = memoryBus()
    await runWithCause({ correlationId: 'request-1', depth: 0, userId: 'kim' }, () => bus.emit('a.b', { payload: 1 }))
    const { correlationId, userId } = bus.publishedEvents()[0]!.metadata
    expect([correlationId, userId]).toEqual(['request-1', 'kim'])
  })
})

describe('the handle of a subscription in memory', () => {
  it('says where it stands', async () => {
    const bus = memoryBus()
    const handle = bus.subscribe({ id: 'all', on: ['a.*'], handle: () => {} })
    const { id } = await bus.emit('a.b', { payload: 1 })
    expect(await handle.status()).toMatchObject({
      id: 'all',
      status: 'active',
      position: 1n,
      lag: 0n,
      lastEventId: id,
      on: ['a.*'],
    })
    await handle.pause()
    await bus.emit('a.b', { payload: 2 })
    await bus.clock.advance(3_000)
    expect(await handle.status()).toMatchObject({ status: 'paused', position: 1n, lag: 1n, lagSeconds: 3 })
    expect((await bus.subscriptions.list()).map(({ id: listed }) => listed)).toEqual(['all'])
  })

  it('moves forward and back, by position, time and name', async () => {
    const bus = memoryBus()
    const seen: unknown[] = []
    const handle = bus.subscribe({ id: 'all', handle: (event) => seen.push(event.payload) })
    await handle.pause()
    await bus.emit('a.b', { payload: 1 })
    await bus.clock.advance(60_000)
    const later = bus.clock.now()
    await bus.emit('a.b', { payload: 2 })
    await bus.emit('a.b', { payload: 3 })
    expect(await handle.previewSeek(later)).toEqual({ from: 0n, to: 1n, events: 1, direction: 'forward' })
    await handle.seek(later)
    await handle.resume()
    expect(seen).toEqual([2, 3])
    expect(await handle.fastForward()).toMatchObject({ direction: 'nowhere', events: 0 })
    await handle.seek('start')
    expect(seen).toEqual([2, 3, 1, 2, 3])
    await expect(handle.seek(-1n)).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })

  it('forgets everything when it is removed', async () => {
    const bus = memoryBus()
    const broken = {
      id: 'broken',
      retry: { maxAttempts: 1 },
      handle() {
        throw new Error('no')
      },
    }
    await bus.subscribe(broken).pause()
    await bus.emit('a.b', { payload: 1 })
    await bus.subscriptions.get('broken').resume()
    expect(await bus.deadLetters.count()).toBe(1)
    await bus.subscriptions.get('broken').remove()
    expect(await bus.deadLetters.count()).toBe(0)
    expect(() => bus.subscriptions.get('broken')).toThrow(expect.objectContaining({ code: 'UNKNOWN_SUBSCRIPTION' }))
    bus.subscribe(broken)
    await bus.drain()
    expect(await bus.deadLetters.count()).toBe(1)
  })
})
