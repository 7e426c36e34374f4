/**
 * The judge. It holds what writers were told is committed, and nothing that the product says about itself: an event is
 * entered when the answer to COMMIT has come. A reader is right if its list is the ledger in position order.
 */
import type pg from 'pg'
import { expect } from 'vitest'
import type { Follower } from '../../log/support/open-log.ts'

export interface Written {
  readonly id: string
  readonly position: bigint
}

export interface Ledger {
  /** To be called when COMMIT was answered, not before. */
  enter(written: readonly Written[]): void
  /** In position order. */
  readonly written: readonly Written[]
}

export function createLedger(): Ledger {
  const entries: Written[] = []
  let sorted: Written[] | undefined
  return {
    enter(written) {
      for (const { id, position } of written) entries.push({ id, position })
      sorted = undefined
    },
    get written() {
      sorted ??= [...entries].sort((a, b) => (a.position < b.position ? -1 : 1))
      return sorted
    },
  }
}

/** Waits for the last event of the ledger, then compares all of them: none missing, none twice, none out of order. */
export async function expectAllRead(reader: Follower, ledger: Ledger): Promise<void> {
  const last = ledger.written.at(-1)
  if (last) await reader.sees(last.id)
  expect(readBy(reader)).toEqual(ledger.written)
}

export function readBy(reader: Follower): Written[] {
  return reader.events.map(({ id, position }) => ({ id, position }))
}

/** A cross-check of the judge itself: the table holds what the writers were told. */
export async function expectStored(sql: pg.Client, ledger: Ledger): Promise<void> {
  const { rows } = await sql.query('select id, position from aftercommit.events order by position')
  expect(rows.map(({ id, position }) => ({ id, position: BigInt(position) }))).toEqual(ledger.written)
}
