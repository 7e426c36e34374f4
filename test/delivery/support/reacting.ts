/** What events ask for, done right away by a worker on a database of its own. */
import type pg from 'pg'
import type { DeliveryOptions, Reaction, Work } from '../../../src/delivery/index.ts'
import { type OpenWorker, openDelivering, work } from './open-delivering.ts'

/** What an event asks for: `first` is the attempt from the window, `later` those from a row. */
export function reaction(
  later: Work['run'],
  first: Reaction['run'],
  words: Partial<Reaction> & { name?: string; timeoutMs?: number } = {},
): Reaction {
  const { name = 'mail', timeoutMs = 30_000, ...rest } = words
  return {
    work: work(later, { name, timeoutMs }),
    eventId: 'evt-1',
    owner: 'shop',
    destination: '',
    tenant: '',
    key: null,
    priority: 0,
    run: first,
    payload: () => ({ n: 1 }),
    ...rest,
  }
}

/** The signal of a subscription that does not end. */
export const never = (): AbortSignal => new AbortController().signal

export interface Reacting {
  readonly one: OpenWorker
  readonly sql: pg.Client
  rows(condition?: string): Promise<number>
}

/** `toOptions` gets the address of the database. */
export async function reacting(toOptions: (url: string) => Partial<DeliveryOptions> = () => ({})): Promise<Reacting> {
  const { worker, sql, url } = await openDelivering()
  const one = await worker(toOptions(url))
  // A lease is needed to claim what is slow.
  one.register(work(() => {}, { name: 'warm-up' }))
  // Twice: a renewal that was asked for early follows the first, and news of before a test would come in its middle.
  for (let n = 0; n < 2; n++) await one.reactions().begin()
  const rows = async (condition = 'true') =>
    (await sql.query(`select from aftercommit.deliveries where ${condition}`)).rowCount ?? 0
  return { one, rows, sql }
}
