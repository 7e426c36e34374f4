import { AftercommitError } from '../errors.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Definition } from './definition.ts'

/** Where a subscription authorises, an event without a user is refused unasked: nobody answers for it. */
export async function assertAuthorized({ id, authorize }: Definition, events: readonly AnyEvent[]): Promise<void> {
  if (!authorize) return
  for (const event of events) {
    if (event.metadata.userId !== null && (await authorize(event, { subscription: id }))) continue
    const why = event.metadata.userId === null ? 'names no user' : `is not authorised for "${id}"`
    throw new AftercommitError('UNAUTHORIZED', `Event "${event.id}" ${why}, so its handler was not called.`)
  }
}
