import { describe, expect, it } from 'vitest'
import type { CustomContext, CustomHandler } from '../../../src/observers/action.ts'
import { currentCause } from '../../../src/runtime/index.ts'
import { GiveUp, RetryAfter } from '../../../src/subscriptions/index.ts'
import { failureOf, prepare, requestFor } from './support.ts'

function customWith(handler: CustomHandler, config: Record<string, unknown> = {}) {
  return prepare('custom', { handler: 'billing', ...config }, { handlers: new Map([['billing', handler]]) })
}

describe('a custom action', () => {
  it('calls the handler with the event, its rendered config and what it needs to be idempotent', async () => {
    const calls: CustomContext[] = []
    const action = customWith((_, context) => void calls.push(context), {
      config: { amount: '{{ total }}', to: 'x {{ a }}' },
    })
    const request = requestFor({ payload: { total: 12, a: 'b' }, attempt: 3 })
    expect(await action.run(request)).toMatchObject({ actionType: 'custom', success: true })
    const { idempotencyKey, createdAt } = request
    expect(calls).toMatchObject([
      { config: { amount: 12, to: 'x b' }, observer: 'orders', attempt: 3, idempotencyKey, createdAt },
    ])
    expect(action.preview(request).content).toEqual({ handler: 'billing', config: { amount: 12, to: 'x b' } })
  })

  it('runs as something that the event caused', async () => {
    let cause: unknown
    await customWith(() => {
      cause = currentCause()
    }).run(requestFor())
    expect(cause).toMatchObject({ causationId: 'evt-1', correlationId: 'evt-1' })
  })

  it('that throws is tried again', async () => {
    const error = await failureOf(() =>
      customWith(() => Promise.reject(new Error('the ledger is closed'))).run(requestFor()),
    )
    expect(error).toMatchObject({
      code: 'OB004',
      transient: true,
      message: expect.stringContaining('the ledger is closed'),
    })
  })

  it('that throws outright, or throws no error, is tried again as well', async () => {
    const throwing = customWith(() => {
      throw 'nonsense'
    })
    expect(await failureOf(() => throwing.run(requestFor()))).toMatchObject({ code: 'OB004', transient: true })
  })

  it('that gives up is not tried again, and one that asks for time gets it', async () => {
    const givingUp = customWith(() => Promise.reject(new GiveUp('no such account')))
    expect(await failureOf(() => givingUp.run(requestFor()))).toMatchObject({ code: 'OB004', transient: false })
    const later = customWith(() => Promise.reject(new RetryAfter('90s')))
    expect(await failureOf(() => later.run(requestFor()))).toMatchObject({ transient: true, retryAfterMs: 90_000 })
  })

  it('does not tell secrets that an error repeats', async () => {
    const handler = () => Promise.reject(new Error('no answer from https://user:canary@bank.example/?token=canary'))
    expect((await failureOf(() => customWith(handler).run(requestFor()))).message).not.toContain('canary')
  })

  it('says how long it may take and what it failed with when it took longer', () => {
    const handlers = new Map<string, CustomHandler>([['slow', () => new Promise(() => {})]])
    const action = prepare('custom', { handler: 'slow', timeout: '5s' }, { handlers })
    expect(action.timeoutMs).toBe(5_000)
    expect(action.toTimeout?.()).toMatchObject({
      code: 'OB004',
      transient: true,
      message: expect.stringContaining('5 s'),
    })
  })

  it('is told by its signal when the attempt is over', async () => {
    const stopping = new AbortController()
    const action = customWith(
      (_, { signal }) =>
        new Promise((__, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          stopping.abort(new Error('stopping'))
        }),
    )
    await expect(action.run(requestFor({ signal: stopping.signal }))).rejects.toThrow('stopping')
  })

  it('that is done at once costs no promise', () => {
    expect(customWith(() => 1).run(requestFor())).toMatchObject({ actionType: 'custom', success: true })
  })

  it('is refused when its handler is not registered', async () => {
    const handlers = new Map<string, CustomHandler>([['billing', () => {}]])
    const error = await failureOf(() => prepare('custom', { handler: 'biling' }, { handlers }))
    expect(error).toMatchObject({ code: 'OB012', path: ['handler'] })
    expect(error.message).toContain('Did you mean "billing"?')
  })
})
