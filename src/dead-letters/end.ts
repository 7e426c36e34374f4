/** Dead letters that end without an attempt, because the owner or a person decided so. */
import type { Queryable } from '../postgres/index.ts'
import type { LetterKind } from './letter.ts'

/** The workflow was told, and goes on by itself, or has ended with it. */
export async function resolveReported(
  db: Queryable,
  { kind, owner, eventId }: { kind: string; owner: string; eventId: string },
): Promise<void> {
  await db.query(
    `update ${db.schema}.letters
        set status = 'resolved', who = $2::text, reason = 'the workflow was told', changed_at = clock_timestamp()
      where kind = $1::text and owner = $4::text and event_id = $3::text and status in ('dead', 'discarded')`,
    [kind, `workflow ${owner}`, eventId, owner],
  )
}

/** The owner of these letters is gone. */
export async function discardLettersOf(db: Queryable, kind: LetterKind, owner: string, reason: string): Promise<void> {
  await db.query(
    `update ${db.schema}.letters
        set status = 'discarded', who = 'aftercommit', reason = $3::text, changed_at = clock_timestamp()
      where kind = $1::text and owner = $2::text and status in ('dead', 'redriving')`,
    [kind, owner, reason],
  )
}
