/** Why something happens: what the events of a decision carry, and what is handed on to its effects and timers. */
import { AftercommitError } from '../errors.ts'
import { metadataToStored } from '../events/index.ts'
import type { Cause } from '../runtime/index.ts'

/** As it is stored with an effect or a timer; absent parts are left out. */
export interface StoredChain {
  readonly correlation: string
  readonly causation?: string | undefined
  readonly depth?: number | undefined
  readonly user?: string | undefined
  readonly tenant?: string | undefined
  readonly trace?: string | undefined
}

/** What leads to a decision. `depth` is that of the events it makes. */
export interface Chain {
  readonly correlationId: string | undefined
  readonly causationId: string | undefined
  readonly depth: number
  readonly userId: string | undefined
  readonly tenant: string | undefined
  readonly traceparent: string | undefined
}

/** Something outside leads to it: a request, an event of the log that is being handled, or nothing known. */
export function chainOf(cause: Cause | undefined, traceparent: string | undefined): Chain {
  return {
    correlationId: cause?.correlationId,
    causationId: cause?.causationId,
    depth: cause === undefined ? 0 : cause.depth + 1,
    userId: cause?.userId,
    tenant: cause?.tenant,
    traceparent: traceparent ?? cause?.traceparent,
  }
}

/** The chain goes on through an effect: a hop from an instance to itself makes it no deeper. Through a timer it is new. */
export function chainFrom({ correlation, causation, depth = 0, user, tenant, trace }: StoredChain): Chain {
  return { correlationId: correlation, causationId: causation, depth, userId: user, tenant, traceparent: trace }
}

/** What code that runs for an effect emits. */
export function causeFrom({ correlation, causation, depth = 0, user, tenant, trace }: StoredChain): Cause {
  return {
    correlationId: correlation,
    causationId: causation,
    depth,
    ...(user === undefined ? {} : { userId: user }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(trace === undefined ? {} : { traceparent: trace }),
  }
}

/** What follows from a decision is caused by its last event. */
export function chainAfter(chain: Chain, eventId: string, firstId: string): StoredChain {
  return {
    correlation: chain.correlationId ?? firstId,
    causation: eventId,
    depth: chain.depth === 0 ? undefined : chain.depth,
    user: chain.userId,
    tenant: chain.tenant,
    trace: chain.traceparent,
  }
}

export function metadataJson(chain: Chain, firstId: string, schemaVersion: number): string {
  const { causationId, depth, userId, traceparent } = chain
  const correlationId = chain.correlationId ?? firstId
  if (
    causationId === undefined &&
    depth === 0 &&
    userId === undefined &&
    traceparent === undefined &&
    schemaVersion === 1
  )
    return `{"correlation_id":${JSON.stringify(correlationId)}}`
  return JSON.stringify(metadataToStored({ correlationId, causationId, depth, userId, traceparent, schemaVersion }))
}

export function assertDepth(chain: Chain, type: string, maxDepth: number): void {
  if (chain.depth <= maxDepth) return
  throw new AftercommitError(
    'TOO_DEEP',
    `An event of workflow "${type}" would be number ${chain.depth} in a chain of causes, more than ${maxDepth}, so nothing ` +
      'was written. An event probably causes itself: look at its causation chain, or raise `log.maxDepth`.',
  )
}
