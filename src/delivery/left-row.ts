/** Rows and dead letters of first attempts, in the form in which the checkpoint is written with them. */
import { copyEvent } from '../dead-letters/index.ts'
import { type AftercommitEvent, stringifyJson } from '../events/index.ts'
import type { LeftLane, LeftLetter, LeftRow } from '../subscriptions/index.ts'
import type { NewDelivery } from './delivery.ts'
import type { Reaction } from './first-attempts.ts'

/** A row for a later attempt. */
export function toLeftRow(reaction: Reaction, words: Pick<LeftRow, 'delayMs' | 'tried'>): LeftRow {
  const { owner, key, event } = reaction
  return { lane: laneOf(reaction), owner, key, eventId: event.id, payload: toText(reaction.payload()), ...words }
}

/** Work that follows another's end. */
export function rowOf(delivery: NewDelivery, event: AftercommitEvent): LeftRow {
  const { kind, name, owner, key = null, destination = '', tenant = '', priority = 0 } = delivery
  const lane = { kind, name, destination, tenant, priority }
  return { lane, owner, key, eventId: event.id, payload: toText(delivery.payload), delayMs: 0 }
}

/** A dead letter that can be made a row again. */
export function toLeftLetter(
  reaction: Reaction,
  event: AftercommitEvent,
  words: Pick<LeftLetter, 'error' | 'sinceFirstMs'>,
): LeftLetter {
  const { owner, key } = reaction
  return {
    lane: laneOf(reaction),
    owner,
    orderKey: key,
    key: key ?? event.key,
    eventId: event.id,
    position: event.position,
    event: copyEvent(event),
    attempts: 1,
    payload: toText(reaction.payload()),
    ...words,
  }
}

/** Rows that run in order by a key share one lane for all tenants and priorities. */
export function laneOf({ work: { kind, name }, destination, key, tenant, priority }: Reaction): LeftLane {
  return { kind, name, destination, ...(key === null ? { tenant, priority } : { tenant: '', priority: 0 }) }
}

function toText(payload: unknown): string {
  return stringifyJson(payload, { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'payload' })
}
