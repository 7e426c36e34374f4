/**
 * The handler of a relay: the sink accepts the events, then that is noted. Everything else is the runner's: the same
 * batch again while the sink is unavailable, halves of a batch that the sink refuses, and a dead letter for a message that
 * fails alone.
 */
import type { AnyEvent } from '../../log/index.ts'
import type { Database } from '../../postgres/index.ts'
import type { Logger } from '../../runtime/index.ts'
import { type CallSinkParts, callSink } from './call-sink.ts'
import type { SinkMessage } from './sink.ts'
import { insertBatch } from './statements.ts'

export interface PublishParts extends CallSinkParts {
  readonly database: Database
  readonly logger: Logger
  readonly toMessage: (event: AnyEvent) => SinkMessage
}

/** Resolves when the sink has accepted all of them. */
export async function publish(
  relay: string,
  events: readonly AnyEvent[],
  signal: AbortSignal,
  parts: PublishParts,
): Promise<void> {
  const { database, logger, toMessage } = parts
  await callSink(parts, events.map(toMessage), signal)
  try {
    await insertBatch(
      database.control,
      relay,
      events.map(({ position }) => position),
    )
  } catch (error) {
    // The sink has accepted the events: a failure now would send them again.
    logger.warn({ subscription: relay, err: error }, 'published, but not noted; the outbox view does not show it')
  }
}
