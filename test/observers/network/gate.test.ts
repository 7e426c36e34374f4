import { describe, expect, it } from 'vitest'
import { createGate, onAbort } from '../../../src/observers/network/index.ts'

it('lets in as many as it has room for, then the first who waits', async () => {
  const gate = createGate(2)
  const [first, second] = await Promise.all([gate.enter(), gate.enter()])
  const order: string[] = []
  const third = gate.enter().then((leave) => {
    order.push('third')
    return leave
  })
  const fourth = gate.enter().then((leave) => {
    order.push('fourth')
    return leave
  })
  await Promise.resolve()
  expect(order).toEqual([])
  first()
  first()
  await third
  expect(order).toEqual(['third'])
  second()
  const leaves = await Promise.all([third, fourth])
  expect(order).toEqual(['third', 'fourth'])
  for (const leave of leaves) leave()
  expect(gate.inside).toBe(0)
})

it('lets whoever waits give up, and keeps no place for them', async () => {
  const gate = createGate(1)
  const leave = await gate.enter()
  const patience = new AbortController()
  const waiting = gate.enter(patience.signal)
  const next = gate.enter()
  patience.abort(new Error('no longer needed'))
  await expect(waiting).rejects.toThrow('no longer needed')
  await expect(gate.enter(patience.signal)).rejects.toThrow('no longer needed')
  leave()
  const last = await next
  last()
  expect(gate.inside).toBe(0)
})

describe('listening to a signal', () => {
  it('takes one listener of it, however many calls share it', () => {
    const stopping = new AbortController()
    let listeners = 0
    const add = stopping.signal.addEventListener.bind(stopping.signal)
    stopping.signal.addEventListener = ((...given: Parameters<typeof add>) => {
      listeners++
      add(...given)
    }) as typeof stopping.signal.addEventListener
    const heard: number[] = []
    const stops = Array.from({ length: 100 }, (_, i) => onAbort(stopping.signal, () => heard.push(i)))
    stops[1]?.()
    stopping.abort()
    expect(listeners).toBe(1)
    expect(heard).toHaveLength(99)
    expect(heard).not.toContain(1)
  })

  it('that has fired already is heard at once', () => {
    let heard = 0
    onAbort(AbortSignal.abort(), () => heard++)
    expect(heard).toBe(1)
  })
})
