/**
 * Work that waits in this process while other live processes could do it. The owner of a backlog reads all of it, so the
 * others get rows: as many as their places hold, and none where this process is alone.
 */
import type { Queryable } from '../postgres/index.ts'
import type { LeftLane } from '../subscriptions/index.ts'

export interface Surplus {
  /** Other processes work on the same database. */
  readonly hasOthers: boolean
  /** Of calls that wait, given in the order in which they should go: those that are to become rows. */
  choose<W extends { readonly lane: LeftLane }>(waiting: readonly W[]): Promise<readonly W[]>
}

export interface SurplusParts {
  readonly db: Queryable
  /** The worker of this process; undefined while it has no lease. */
  readonly worker: () => string | undefined
  /** Live workers of other processes, at the last renewal. */
  readonly others: () => number
  /** Places of a process. */
  readonly places: number
}

export function createSurplus({ db, worker, others, places }: SurplusParts): Surplus {
  return {
    get hasOthers() {
      return others() > 0
    },
    async choose(waiting) {
      const self = worker()
      if (self === undefined) return []
      const room = await selectRoom(db, self, lanesOf(waiting), places)
      return waiting.filter(({ lane }) => {
        const name = nameOf(lane)
        const left = room.get(name) ?? 0
        if (left > 0) room.set(name, left - 1)
        return left > 0
      })
    },
  }
}

async function selectRoom(db: Queryable, worker: string, lanes: string, places: number): Promise<Map<string, number>> {
  const { rows } = await db.query<{ kind: string; name: string; room: number }>(
    `select kind, name, room from ${db.schema}.surplus_room($1::text, ($2::text)::jsonb, ($3::text)::integer)`,
    [worker, lanes, String(places)],
    { repeated: true },
  )
  return new Map(rows.map((row) => [nameOf(row), Number(row.room)]))
}

/** JSON: each lane once. */
function lanesOf(waiting: readonly { readonly lane: LeftLane }[]): string {
  const texts = waiting.map(({ lane: { kind, name, destination, tenant, priority } }) =>
    JSON.stringify({ kind, name, destination, tenant, priority }),
  )
  return `[${[...new Set(texts)].join(',')}]`
}

function nameOf({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind} ${name}`
}
