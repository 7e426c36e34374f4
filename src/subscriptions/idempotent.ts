import { AftercommitError } from '../errors.ts'
import type { AftercommitEvent } from '../events/index.ts'
import { isTransaction } from '../postgres/index.ts'
import { type Logger, silentLogger } from '../runtime/index.ts'
import type { HandlerContext } from './definition.ts'
import { claimKey } from './processed-statements.ts'

/**
 * Wraps the handler of a transactional subscription so that an event it has processed is passed over when it comes
 * again: after a seek back, after a restore, or because `ac.processed.mark` said so. The key, subscription and event, is
 * claimed in the transaction of the handler's own writes before it runs: both are kept or neither is.
 *
 * Effects outside this database need `context.idempotencyKey`, given to whoever must not act twice.
 */
export function idempotent<Event extends AftercommitEvent, Tx>(
  handle: (event: Event, context: HandlerContext<Tx>) => unknown,
  { logger = silentLogger }: { logger?: Logger } = {},
): (event: Event, context: HandlerContext<Tx>) => Promise<unknown> {
  return async (event, context) => {
    const { tx, subscription } = context
    if (!isTransaction(tx)) throw notTransactional(subscription)
    if (await claimKey(tx, subscription, event.id, event.position)) return handle(event, context)
    logger.debug({ subscription, event_id: event.id, event_type: event.type }, 'duplicate skipped')
    return undefined
  }
}

function notTransactional(subscription: string): AftercommitError {
  return new AftercommitError(
    'NOT_TRANSACTIONAL',
    `The handler of "${subscription}" is wrapped in idempotent(), but the subscription is not transactional: a key written ` +
      'apart from the work would be lost, or kept, without it. The event was not handled. Set `transactional: true`; for effects ' +
      'outside the database leave the wrapper out and pass `context.idempotencyKey` on to whoever must not act twice.',
  )
}
