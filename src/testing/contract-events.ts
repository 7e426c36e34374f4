/** The events that contract scenarios play with, and short ways to emit and record them. */
import { defineEvents, type StandardSchema } from '../events/index.ts'
import type { EmitInput } from '../index.ts'
import type { AnyEvent } from '../log/index.ts'

const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'aftercommit', validate: (value) => ({ value }) },
}

const positive: StandardSchema = {
  '~standard': {
    version: 1,
    vendor: 'aftercommit',
    validate: (value) => (Number(value) > 0 ? { value } : { issues: [{ message: 'must be above zero' }] }),
  },
}

export const contractEvents = defineEvents(
  {
    'order.placed': anything,
    'order.paid': anything,
    'order.shipped': anything,
    'invoice.sent': anything,
    'amount.counted': positive,
  },
  { streams: ['account'] },
)

/** Tries follow each other at once, as far as anything real can. */
export const QUICKLY = { maxAttempts: 2, initialDelay: '1ms', maxDelay: '2ms' } as const

/** `placed('A', 1)`: event number 1, of order A. */
export function placed(order: string, n: number): EmitInput & { readonly type: string } {
  return { type: 'order.placed', aggregate: { type: 'order', id: order }, payload: { n } }
}

/** `A1`: which order, which number. */
export function nameOf(event: AnyEvent): string {
  return `${event.aggregateId}${(event.payload as { n: number }).n}`
}
