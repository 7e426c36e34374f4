/** Workers that hear what operators do, as running processes would, and the operator's side of them. */
import { onTestFinished } from 'vitest'
import { createDeliveries, type Deliveries, type DeliveryOptions } from '../../../src/delivery/index.ts'
import { createDatabase, type Database } from '../../../src/postgres/index.ts'
import { type Clock, createRegistry, type Registry, systemClock } from '../../../src/runtime/index.ts'
import { connect } from '../../support/database.ts'
import { type OpenDelivering, type OpenWorker, openDelivering } from './open-delivering.ts'

export interface OpenOperating extends OpenDelivering {
  readonly deliveries: Deliveries
  readonly metrics: Registry
  readonly database: Database
  audit(): Promise<unknown[]>
  /** How many rows there are, of those that meet the condition. */
  rows(condition?: string): Promise<number>
}

/** `clock`: the operator's. */
export async function openOperating({ clock = systemClock }: { clock?: Clock } = {}): Promise<OpenOperating> {
  const { url, sql, worker } = await openDelivering()
  const database = createDatabase({ database: url, clock })
  onTestFinished(() => database.close(1_000))
  const { channel } = database.schemaName
  const hearing: OpenWorker[] = []
  const ears = await connect(url)
  ears.on('notification', ({ payload }) => {
    if (payload === 'nudge') for (const one of hearing) one.nudged()
  })
  await ears.query(`listen "${channel}"`)
  const metrics = createRegistry({ clock })
  const nudge = async () => void (await database.query(`select pg_notify('${channel}', 'nudge')`))
  return {
    url,
    sql,
    database,
    metrics,
    deliveries: createDeliveries({ database, metrics, nudge }),
    async worker(options: Partial<DeliveryOptions> = {}) {
      const one = await worker(options)
      hearing.push(one)
      return one
    },
    audit: async () =>
      (await sql.query('select who, what, target, after, reason from aftercommit.audit order by id')).rows,
    rows: async (condition = 'true') =>
      (await sql.query(`select from aftercommit.deliveries where ${condition}`)).rowCount ?? 0,
  }
}

/** A promise and the way to keep it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}
