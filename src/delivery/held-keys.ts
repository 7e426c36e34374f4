/**
 * Which keys of ordered work have something that waits, so that later events of them must queue behind it. Known in the
 * process that reads the events, which alone adds to it; asked again now and then, since others work the rows off.
 */
import type { Queryable } from '../postgres/index.ts'
import type { Clock } from '../runtime/index.ts'

export interface HeldKeys {
  has(name: string, key: string): boolean
  /** A row of this key is being written here; call what it returns when it is, or is not. */
  hold(name: string, key: string): () => void
  /** Looks again. Before the first event, and after another process has read. */
  load(): Promise<void>
  /** Looks again if the last look is old and something is held. */
  refresh(): Promise<void> | undefined
}

const FRESH_MS = 1_000

export function createHeldKeys(db: Queryable, clock: Clock): HeldKeys {
  let held = new Set<string>()
  /** Since the look that is under way began. */
  let added = new Set<string>()
  /** Rows that a look cannot see yet, and how many. */
  const writing = new Map<string, number>()
  let looking: Promise<void> | undefined
  let lookedAt = Number.NEGATIVE_INFINITY

  async function look(): Promise<void> {
    added = new Set()
    try {
      const found = await selectHeldKeys(db)
      held = new Set([...found, ...added, ...writing.keys()])
      lookedAt = clock.monotonic()
    } finally {
      looking = undefined
    }
  }

  return {
    has: (name, key) => held.has(toText(name, key)),
    hold(name, key) {
      const text = toText(name, key)
      held.add(text)
      writing.set(text, (writing.get(text) ?? 0) + 1)
      return () => {
        // A look that is under way began before the row was there.
        added.add(text)
        const left = writing.get(text)! - 1
        if (left === 0) writing.delete(text)
        else writing.set(text, left)
      }
    },
    load() {
      looking ??= look()
      return looking
    },
    refresh() {
      if (held.size === 0 || clock.monotonic() - lookedAt < FRESH_MS) return undefined
      looking ??= look()
      return looking
    },
  }
}

async function selectHeldKeys(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string; key: string }>(
    `select l.name, d.key
       from ${db.schema}.deliveries d
       join ${db.schema}.delivery_lanes l on l.lane = d.lane
      where d.ordered
     union
     select n.name, x.key
       from ${db.schema}.letters x
       join ${db.schema}.delivery_lanes n on n.lane = (x.delivery ->> 'lane')::integer
      where x.parks and x.status in ('dead', 'redriving') and x.delivery is not null`,
  )
  return rows.map(({ name, key }) => toText(name, key))
}

function toText(name: string, key: string): string {
  return `${name}\u0000${key}`
}
