/**
 * Events as clients get them, made once however many clients there are. They are shared, so they are frozen: what one
 * `allows` changed would otherwise reach another client.
 */
import { type EventDefinitions, isUndecodable } from '../events/index.ts'
import { type AnyEvent, liftEvent } from '../log/index.ts'
import { type Clock, createThrottledLog, type Logger } from '../runtime/index.ts'
import type { FeedItem } from './feed.ts'
import { formatToken } from './token.ts'

export interface ItemParts {
  readonly definitions: EventDefinitions | undefined
  readonly logger: Logger
  readonly clock: Clock
}

export type ToItem = (event: AnyEvent, epoch: number) => FeedItem

export function createToItem({ definitions, logger, clock }: ItemParts): ToItem {
  // By the event that the tailer shares: an item lives as long as the newest events are at hand, or somebody holds it.
  const items = new WeakMap<AnyEvent, FeedItem>()
  const logRepeatedly = createThrottledLog({ logger, clock })

  function make(event: AnyEvent, epoch: number): FeedItem {
    const token = formatToken(epoch, event.position)
    try {
      const lifted = liftEvent(definitions, event)
      if (!isUndecodable(lifted)) return { kind: 'event', event: freeze(lifted), token }
      warn(event, {})
    } catch (error) {
      warn(event, { err: error })
    }
    // Passing it over would be a silent gap: the client is told to look for itself.
    return { kind: 'resync', token }
  }

  function warn({ id, type }: AnyEvent, fields: object): void {
    const message = 'an event cannot be read by this release; clients of live feeds are told to load anew'
    logRepeatedly('warn', type, { event_id: id, event_type: type, ...fields }, message)
  }

  return (event, epoch) => {
    let item = items.get(event)
    if (item === undefined) {
      item = make(event, epoch)
      items.set(event, item)
    }
    return item
  }
}

function freeze(event: AnyEvent): AnyEvent {
  for (const part of [event.payload, event.changes, event.previous, event.metadata]) freezeDeep(part)
  Object.freeze(event)
  return event
}

function freezeDeep(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const member of Object.values(value)) freezeDeep(member)
}
