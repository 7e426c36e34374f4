import { defineEvents } from 'aftercommit'
import { z } from 'zod'

/** What can happen in this shop. `order` is kept as a stream: each order's events are numbered 1, 2, … */
export const events = defineEvents(
  {
    'order.placed': z.object({ customer: z.string(), total: z.number().int().positive() }),
    'order.paid': z.object({ method: z.enum(['card', 'transfer']) }),
    'order.shipped': z.object({ carrier: z.string() }),
  },
  { streams: ['order'] },
)
