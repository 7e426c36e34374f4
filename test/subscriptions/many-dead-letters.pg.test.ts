/** Many dead letters: nobody reads them all to find a few. What counts is the plan, not the time. */
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { selectMarked, selectMarkedOwners } from '../../src/dead-letters/index.ts'
import { markLetters } from '../../src/dead-letters/redrive.ts'
import { countLetters, selectLetters } from '../../src/dead-letters/statements.ts'
import type { Queryable } from '../../src/postgres/index.ts'
import { openSubscriptions } from './support/open-subscriptions.ts'

describe('with 200,000 letters', () => {
  it('lists, counts and looks for marked ones without reading them all', async () => {
    const { ac, sql } = await openSubscriptions()
    await sql.query(`
      insert into aftercommit.letters
        (kind, owner, key, event_id, position, event, error, attempts, first_attempt_at, last_attempt_at, parks)
      select 'subscription', 'owner-' || n % 20, 'lamp/' || n, 'event-' || n, n, '{}', '{"message": "broken"}', 4, now(), now(), true
        from generate_series(1, 200000) n;
      analyze aftercommit.letters`)
    const asked = explaining(sql)
    for (const ask of [
      () => selectLetters(asked, {}, 100),
      () => selectLetters(asked, { before: 100_000n }, 100),
      () => selectLetters(asked, { owner: 'owner-7' }, 100),
      () => selectLetters(asked, { owner: 'owner-7', status: 'dead' }, 100),
      () => selectLetters(asked, { eventId: 'event-77' }, 100),
      () => countLetters(asked, { owner: 'owner-7', status: 'dead' }),
      () => markLetters(asked, { ids: [77n] }, { status: 'redriving', who: 'me', reason: null }),
      () => selectMarked(asked, 'owner-7', 50),
      () => selectMarkedOwners(asked, ['owner-7']),
    ]) {
      const { plan, scanned } = await asked.planOf(ask)
      expect(plan, String(ask)).not.toMatch(/Seq Scan on letters/)
      expect([String(ask), scanned <= 20_000]).toEqual([String(ask), true])
    }
    // What an owner asks every few seconds must not grow with the letters that wait for somebody.
    const { scanned } = await asked.planOf(() => selectMarkedOwners(asked, ['owner-7']))
    expect(scanned).toBeLessThan(100)
    expect(await ac.deadLetters.count()).toBe(200_000)
  })
})

/** Stands in for a database and explains what it is asked instead of answering. */
function explaining(sql: pg.Client): Queryable & {
  planOf(ask: () => Promise<unknown>): Promise<{ plan: string; scanned: number }>
} {
  let plan = ''
  return {
    schema: 'aftercommit',
    async query(text, values = []) {
      await sql.query('begin')
      const { rows } = await sql.query(`explain (analyze, costs off, timing off) ${text}`, [...values])
      await sql.query('rollback')
      plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      return { rows: [], rowCount: 0 }
    },
    async planOf(ask) {
      // There are no rows to make an answer of.
      await ask().catch(() => {})
      const scans = [...plan.matchAll(/Scan.* on letters.*\(actual .*?rows=([\d.]+)/g)].map(([, rows]) => Number(rows))
      const removed = [...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, rows]) => Number(rows))
      return { plan, scanned: [...scans, ...removed].reduce((sum, rows) => sum + rows, 0) }
    },
  }
}
