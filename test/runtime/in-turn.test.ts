import { describe, expect, test } from 'vitest'
import { createInTurn, createInTurnByKey } from '../../src/runtime/index.ts'
import { gate } from './support.ts'

describe('work in turn', () => {
  test('begins when the work before has ended, in the order of the calls', async () => {
    const inTurn = createInTurn()
    const log: string[] = []
    const open = gate()
    const first = inTurn(async () => {
      log.push('first begins')
      await open.passed
      log.push('first ends')
    })
    const second = inTurn(() => log.push('second'))
    await new Promise(setImmediate)
    expect(log).toEqual(['first begins'])
    open.pass()
    await Promise.all([first, second])
    expect(log).toEqual(['first begins', 'first ends', 'second'])
  })

  test('goes on after a failure, which reaches its caller alone', async () => {
    const inTurn = createInTurn()
    const failed = inTurn(() => Promise.reject(new Error('mine')))
    const next = inTurn(() => 'next')
    await expect(failed).rejects.toThrow('mine')
    expect(await next).toBe('next')
  })
})

describe('work in turn by key', () => {
  test('of one key waits, of another key runs beside it', async () => {
    const inTurn = createInTurnByKey()
    const log: string[] = []
    const open = gate()
    const held = inTurn('a', () => open.passed)
    const behind = inTurn('a', () => log.push('a again'))
    await inTurn('b', () => log.push('b'))
    expect(log).toEqual(['b'])
    open.pass()
    await Promise.all([held, behind])
    expect(log).toEqual(['b', 'a again'])
  })

  test('goes on behind work of its key that failed', async () => {
    const inTurn = createInTurnByKey()
    const failed = inTurn('a', () => Promise.reject(new Error('mine')))
    const next = inTurn('a', () => 'next')
    await expect(failed).rejects.toThrow('mine')
    expect(await next).toBe('next')
    expect(await inTurn('a', () => 'later')).toBe('later')
  })
})
