import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createAftercommit, defineEvents, memorySink } from '../../src/index.ts'
import { fulfilment } from '../workflows/support/fulfilment.ts'

const events = defineEvents({ 'order.placed': z.object({}), 'order.shipped': z.object({}) })
const open = () => createAftercommit({ database: 'postgres://localhost/none', events })
const misspelt = { code: 'UNKNOWN_EVENT', message: expect.stringContaining('Did you mean "order.placed"?') }

describe('a misspelt event name', () => {
  it.each([
    ['a subscription', (name: string) => open().subscribe({ id: 'x', on: [name as never], handle: () => {} })],
    [
      'a projection',
      (name: string) => open().project({ id: 'x', on: [name as never], apply: (state: unknown) => state as never }),
    ],
    ['a relay', (name: string) => open().relay({ id: 'x', on: [name], to: memorySink() })],
    [
      'a workflow',
      (name: string) =>
        open().workflows.register({
          ...fulfilment,
          on: { [name]: () => ({ type: 'place', orderId: '1', total: 1 }) },
        } as never),
    ],
  ])('in %s is refused with the name that was meant', (_, register) => {
    expect(() => register('order.placd')).toThrow(expect.objectContaining(misspelt))
    expect(() => register('order.placed')).not.toThrow()
  })

  it.each(['order.*', 'auth.logged_in', 'sms.delivered', 'aftercommit.cache.invalidated', 'invoice.paid'])(
    'is not what %s is: a pattern, a name of ours, or a name of another program',
    (name) => {
      expect(() => open().subscribe({ id: 'x', on: [name as never], handle: () => {} })).not.toThrow()
    },
  )

  it('is not what an event of a workflow is', () => {
    const ac = open()
    ac.workflows.register(fulfilment, {})
    expect(() => ac.subscribe({ id: 'x', on: ['fulfilment.placed' as never], handle: () => {} })).not.toThrow()
  })
})

it.each(['end', -1n, 7, new Date(Number.NaN)])(
  'a bad `from` (%s) is refused with the name of the subscription',
  (from) => {
    expect(() => open().subscribe({ id: 'late', from: from as never, handle: () => {} })).toThrow(
      /Subscription "late" has a `from`/,
    )
  },
)

it('a database URL that cannot be read is refused without repeating it', async () => {
  const ac = createAftercommit({ database: 'postgres://app:canary@localhost:99999/shop' })
  const error = (await ac.emitNow('order.placed', { payload: {} }).catch((reason) => reason)) as {
    code: string
    message: string
  }
  expect(error).toMatchObject({ code: 'BAD_OPTION', message: expect.stringContaining('cannot be read') })
  expect(error.message).not.toContain('canary')
})
