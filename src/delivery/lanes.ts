/**
 * Lanes: what work is grouped by, as the numbers that lead every row. Few and never removed, so each process remembers
 * those it has met.
 */
import type { Queryable } from '../postgres/index.ts'
import type { DeliveryKind } from './delivery.ts'

export interface Lane {
  readonly lane: number
  readonly kind: DeliveryKind
  readonly name: string
  readonly destination: string
  readonly tenant: string
  readonly priority: number
}

export interface Lanes {
  /** Makes it if it is new, outside of the caller's transaction: a lane may outlive who first wanted it. */
  numberOf(lane: Omit<Lane, 'lane'>): Promise<number>
  /** A lane that was met before. */
  known(lane: number): Lane | undefined
  /** A lane that a row names, asked for when it was made elsewhere. */
  get(lane: number): Promise<Lane>
}

export function createLanes(db: Queryable): Lanes {
  const byKey = new Map<string, Promise<number>>()
  const byNumber = new Map<number, Lane>()

  async function make(wanted: Omit<Lane, 'lane'>): Promise<number> {
    const { rows } = await db.query<{ lane: number }>(
      `select ${db.schema}.delivery_lane($1::text, $2::text, $3::text, $4::text, ($5::text)::smallint) as lane`,
      [wanted.kind, wanted.name, wanted.destination, wanted.tenant, String(wanted.priority)],
    )
    const lane = Number(rows[0]!.lane)
    byNumber.set(lane, { lane, ...wanted })
    return lane
  }

  return {
    numberOf(wanted) {
      const key = JSON.stringify([wanted.kind, wanted.name, wanted.destination, wanted.tenant, wanted.priority])
      const known = byKey.get(key)
      if (known) return known
      const made = make(wanted)
      byKey.set(key, made)
      made.catch(() => byKey.delete(key))
      return made
    },
    known: (lane) => byNumber.get(lane),
    async get(lane) {
      const known = byNumber.get(lane)
      if (known) return known
      const { rows } = await db.query<Lane>(
        `select lane, kind, name, destination, tenant, priority from ${db.schema}.delivery_lanes where lane = ($1::text)::integer`,
        [String(lane)],
      )
      byNumber.set(lane, rows[0]!)
      return rows[0]!
    },
  }
}
