/** First attempts of a worker on a database of its own, and a reader that saves what they leave. */
import type pg from 'pg'
import type { DeliveryOptions, Reaction, Work } from '../../../src/delivery/index.ts'
import { AftercommitEvent } from '../../../src/events/index.ts'
import { SERVER } from '../../../src/postgres/index.ts'
import { type Abortable, LazySignal } from '../../../src/runtime/index.ts'
import { Leftovers } from '../../../src/subscriptions/index.ts'
import { Progress } from '../../../src/subscriptions/progress.ts'
import { Saver } from '../../../src/subscriptions/saver.ts'
import { type OpenWorker, openDelivering, work } from './open-delivering.ts'

/** What an event asks for: `first` is the attempt from the window, `later` those from a row. */
export function reaction(
  later: Work['run'],
  first: Reaction['run'],
  words: Partial<Reaction> & { name?: string; timeoutMs?: number; toEvent?: Work['toEvent'] } = {},
): Reaction {
  const { name = 'mail', timeoutMs = 30_000, ...rest } = words
  return {
    work: work(later, { name, timeoutMs }),
    event: eventAt(1n),
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

export function eventAt(position: bigint): AftercommitEvent {
  return new AftercommitEvent({
    id: `evt-${position}`,
    type: 'order.paid',
    position,
    aggregateType: 'order',
    aggregateId: '1',
    version: null,
    payload: {},
    changes: null,
    previous: null,
    tenant: null,
    metadata: { correlationId: null, causationId: null, userId: null, traceparent: null, schemaVersion: 1, depth: 0 },
    occurredAt: new Date(),
    recordedAt: new Date(),
  })
}

/** The call of a subscription that does not end. */
export const never: Abortable = new LazySignal()

export interface SavedReactions {
  begin(): Promise<void>
  /** One event with these reactions. Resolves when they have ended and what they leave is saved. */
  react(reactions: readonly Reaction[], owner: Abortable): Promise<void>
}

/** Reads as the owner of a subscription: what each event leaves is written with a checkpoint. */
export async function savedReactions(one: OpenWorker, sql: pg.Client): Promise<SavedReactions> {
  const reactions = one.reactions()
  await sql.query(`insert into aftercommit.subscriptions (id, kind, definition) values ('reader', 'observers', '{}')
                   on conflict do nothing`)
  const { rows } = await sql.query(
    `insert into aftercommit.subscription_partitions as p (id, position, term) values ('reader', 0, 1)
     on conflict (id, partition) do update set term = p.term + 1
     returning term::text as term, save::text as save, ${SERVER} as server`,
  )
  const progress = new Progress(0n, '{}')
  const saver = new Saver({
    db: one.database.control,
    lease: { ...LEASE, term: BigInt(rows[0].term), save: BigInt(rows[0].save), server: rows[0].server },
    progress,
    logger: one.database.logger,
    onLost: () => {},
    onSaved: () => {},
  })
  let writes: Promise<unknown> = Promise.resolve()
  let position = 0n

  async function saved(): Promise<void> {
    for (;;) {
      const written = writes.then(() => saver.settle()).then(() => saver.save())
      writes = written.catch(() => {})
      try {
        return await written
      } catch {
        // Like the runner, which repeats the write and never a call.
      }
    }
  }

  return {
    begin: () => reactions.begin(),
    async react(asked, owner) {
      const event = eventAt(++position)
      progress.take(position)
      const left = new Leftovers((part) => {
        saver.keepPart(event, part)
        void saved()
      })
      try {
        await reactions.react(
          asked.map((one) => ({ ...one, event })),
          left,
          owner,
        )
      } catch (error) {
        left.drop()
        throw error
      }
      if (left.isEmpty && saver.settledOf(event).length === 0) {
        left.close()
        progress.finish(event.position, event.id)
      } else {
        saver.keep(event, left)
        await saved()
      }
    },
  }
}

const LEASE = {
  id: 'reader',
  position: 0n,
  done: '{}',
  clean: true,
  deaths: 0,
  settled: {},
  keptFrom: 0n,
  forkedAt: null,
  failing: false,
  reason: null,
}

export interface Reacting {
  readonly one: OpenWorker
  readonly reactions: SavedReactions
  readonly sql: pg.Client
  rows(condition?: string): Promise<number>
}

/** `toOptions` gets the address of the database. */
export async function reacting(toOptions: (url: string) => Partial<DeliveryOptions> = () => ({})): Promise<Reacting> {
  const { worker, sql, url } = await openDelivering()
  const one = await worker(toOptions(url))
  // Without something registered there is no lease, and without a lease nothing begins.
  one.register(work(() => {}, { name: 'warm-up' }))
  const reactions = await savedReactions(one, sql)
  // Twice: a renewal that was asked for early follows the first, and news of before a test would come in its middle.
  for (let n = 0; n < 2; n++) await reactions.begin()
  const rows = async (condition = 'true') =>
    (await sql.query(`select from aftercommit.deliveries where ${condition}`)).rowCount ?? 0
  return { one, reactions, rows, sql }
}
