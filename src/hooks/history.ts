import { compilePatterns, isUndecodable, patternsToSql } from '../events/index.ts'
import { type AnyEvent, type FollowedLog, Follower, findPosition, type StartPoint } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import type { Logger } from '../runtime/index.ts'

const PAGE = 500

/**
 * The events of the log up to a position, in order, without those that cannot be read. Read through the tailer, whose frontier
 * is the one the hook stands at.
 */
export async function* readHistory(
  { database, tailer, logger }: { database: Database; tailer: FollowedLog; logger: Logger },
  upTo: bigint,
  { types = [], since = 'start' }: { types?: readonly string[]; since?: StartPoint },
): AsyncGenerator<AnyEvent, void, void> {
  const type = types.length === 0 ? undefined : patternsToSql(types)
  const matches = types.length === 0 ? () => true : compilePatterns(types)
  const follower = new Follower(tailer, { type })
  let position = await findPosition(database.control, since, upTo)
  while (position < upTo) {
    const page = await follower.read(position, PAGE)
    // The log entered another epoch: the hook will notice, and begin anew.
    if (follower.hasLostPlace || (page && page.upTo <= position)) return
    if (page === undefined) continue
    for (const event of page.events) {
      if (event.position > upTo || !matches(event.type)) continue
      if (!isUndecodable(event)) yield event
      else
        logger.error(
          { event_id: event.id, event_type: event.type },
          'an event cannot be read, so a hook loads without it',
        )
    }
    position = page.upTo
  }
}
