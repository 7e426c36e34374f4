import { compilePatterns, patternsToSql } from '../events/index.ts'
import { type AnyEvent, FIRST_WINDOW, findPosition, type StartPoint, type Tailer } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { readPage } from './read-page.ts'

const PAGE = 500

/** The events of the log up to a position, in order. Read through the tailer, whose frontier is the one the hook stands at. */
export async function* readHistory(
  { database, tailer }: { database: Database; tailer: Tailer },
  upTo: bigint,
  { types = [], since = 'start' }: { types?: readonly string[]; since?: StartPoint },
): AsyncGenerator<AnyEvent, void, void> {
  const type = types.length === 0 ? undefined : patternsToSql(types)
  const matches = types.length === 0 ? () => true : compilePatterns(types)
  let position = await findPosition(database.control, since, upTo)
  let window = FIRST_WINDOW
  while (position < upTo) {
    const page = await readPage(tailer, position, PAGE, { type, window })
    window = page.window
    for (const event of page.events) if (event.position <= upTo && matches(event.type)) yield event
    // The log went back to a fork: the hook will notice, and begin anew.
    if (page.upTo <= position) return
    position = page.upTo
  }
}
