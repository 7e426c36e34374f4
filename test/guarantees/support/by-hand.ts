/**
 * A reader whose every statement is a step. The statements are the library's own, sent one by one instead of in one
 * message, so that others can act between any two of them; the decisions are frontier.ts. Nothing loops by itself.
 */
import type pg from 'pg'
import { createFrontier, deliverable } from '../../../src/log/frontier.ts'
import { type LogObjects, readPastHole, readRows } from '../../../src/log/frontier-statements.ts'

export type Messenger = Parameters<typeof readRows>[0]

/** `before` is called ahead of each statement that looks at something; BEGIN and COMMIT of a reader look at nothing. */
export function oneByOne(sql: pg.Client, before: (statement: string) => Promise<void>): Messenger {
  return {
    schema: 'aftercommit',
    async queryMany(text) {
      const results = []
      for (const statement of text.split(';')) {
        if (!/^\s*(begin|commit)/.test(statement)) await before(statement)
        const { rows, rowCount } = await sql.query(statement)
        results.push({ rows, rowCount: rowCount ?? 0 })
      }
      return results
    },
  }
}

export interface HandReader {
  readonly read: readonly bigint[]
  /** Everything at or below was read or passed for good. */
  readonly position: bigint
  round(): Promise<void>
}

export function createHandReader(db: Messenger, objects: LogObjects, start: bigint): HandReader {
  const read: bigint[] = []
  const frontier = createFrontier(start)
  let position = start
  let hole = false
  let nowMs = 0

  async function nextRows() {
    if (!hole) return readRows(db, position, PAGE)
    const { observation, rows } = await readPastHole(db, objects, position, PAGE)
    nowMs += 10
    frontier.observe(observation, nowMs)
    return rows
  }

  return {
    read,
    get position() {
      return position
    },
    async round() {
      const visible = (await nextRows()).map(({ pos }) => BigInt(pos))
      const { count, last } = deliverable(visible, position, frontier.position)
      read.push(...visible.slice(0, count))
      position = last
      if (frontier.position > position) position = frontier.position
      frontier.reachedWithoutHole(position)
      hole = count < visible.length
    },
  }
}

const PAGE = 100
