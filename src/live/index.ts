/**
 * The log for those outside the process: live feeds out, events in. The stage promises that a client gets what it may see
 * in order and once, resumes on any instance without gap or duplicate, and is told whenever that is not possible; that a
 * slow client costs nobody else anything; and that nobody is served who was not authorised, nor after that was revoked.
 * It relies on the one tailer of the process and on auth events of the log.
 *
 * Start with feed.ts (what transports build on), then feed-reader.ts (one client), live-feed.ts (all of them), place.ts
 * and filter.ts, which decide and touch nothing, sse.ts and graphql.ts (the transports), and inbound.ts (the way in).
 */
import { defaultSource, type EventDefinitions } from '../events/index.ts'
import { createGraphql, type Graphql, type GraphqlParts } from './graphql.ts'
import { createInbound, type Inbound, type InboundParts } from './inbound.ts'
import { createFeed, type FeedParts } from './live-feed.ts'
import { createSse, type Sse } from './sse.ts'

export type { Identity } from './feed.ts'
export type { LiveGraphql } from './graphql.ts'
export type { AttachOptions, GraphqlAttachment, GraphqlOptions } from './graphql-options.ts'
export type { InboundHandler } from './inbound.ts'
export type { InboundIdentity, InboundOptions } from './inbound-options.ts'
export type { SseHandler } from './sse.ts'
export type { CorsOptions, SseOptions } from './sse-options.ts'

export interface Live<D extends EventDefinitions = EventDefinitions> {
  /** A handler that sends events of the log to browsers and others, as server-sent events. */
  readonly sse: Sse<D>
  /** GraphQL subscriptions over WebSockets and server-sent events. */
  readonly graphql: Graphql<D>
  /** A handler through which others publish CloudEvents into the log. */
  readonly inbound: Inbound
}

export type LiveParts = FeedParts & InboundParts & Pick<GraphqlParts, 'areSubscriptionsEnabled'>

export function createLive(parts: LiveParts): { live: Live; stop(): Promise<void> } {
  const feed = createFeed(parts)
  const source = defaultSource(parts.database.schemaName.name)
  const sse = createSse({ ...parts, feed, source })
  const graphql = createGraphql({ ...parts, feed })
  return {
    live: { sse: sse.sse, graphql: graphql.graphql, inbound: createInbound(parts) },
    /** Feeds end with a hint when to come back; clients find another instance. */
    async stop() {
      await feed.stop()
      await Promise.all([sse.stop(), graphql.stop()])
    },
  }
}
