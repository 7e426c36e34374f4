/**
 * `ac.live.graphql`: the log as GraphQL subscriptions, over WebSockets and over server-sent events. It promises what the
 * feed promises (feed.ts), and that a subscription never ends without an error that says why and where to go on.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventDefinitions, EventOf } from '../events/index.ts'
import { type Clock, createThrottledLog, type Logger } from '../runtime/index.ts'
import type { Feed } from './feed.ts'
import { attachTo } from './graphql-attach.ts'
import { createPrepare } from './graphql-operation.ts'
import {
  type AttachOptions,
  type GraphqlAttachment,
  type GraphqlOptions,
  type GraphqlSettings,
  toGraphqlSettings,
  type UpgradeServer,
} from './graphql-options.ts'
import { loadGraphql } from './graphql-peers.ts'
import { createSchema } from './graphql-schema.ts'
import { createStreamHandler } from './graphql-stream.ts'
import { toNodeHandler } from './inbound-node.ts'
import { Refusal, toProblem } from './inbound-problem.ts'

export interface LiveGraphql {
  /** A `GraphQLSchema` of the `graphql` that is installed, to print or to compare; null when disabled. */
  readonly schema: unknown
  /** Server-sent events, as graphql-sse speaks them, one operation per request. */
  handler(request: Request): Promise<Response>
  /** The same for Node's `http`, Express and Fastify. */
  node(req: IncomingMessage, res: ServerResponse): Promise<void>
  /** WebSockets, as graphql-ws speaks them. They end with the server, with `detach()` and with `ac.stop()`. */
  attach(server: UpgradeServer, options?: AttachOptions): Promise<GraphqlAttachment>
}

/** Refused with PEER_MISSING where `graphql` is not installed; the packages of a transport are loaded with its first use. */
export type Graphql<D extends EventDefinitions = EventDefinitions> = <
  Principal,
  const P extends readonly string[] = readonly ['*'],
>(
  options: GraphqlOptions<Principal, EventOf<D, P>, P>,
) => Promise<LiveGraphql>

export interface GraphqlParts {
  readonly feed: Feed
  /** What `[graphql] subscriptions_enabled` of a file that was loaded says. */
  readonly areSubscriptionsEnabled: () => boolean
  readonly clock: Clock
  readonly logger: Logger
}

export function createGraphql(parts: GraphqlParts): { graphql: Graphql; stop(): Promise<void> } {
  const stops = new Set<() => Promise<void>>()
  return {
    async graphql(options) {
      const settings = toGraphqlSettings({
        enabled: parts.areSubscriptionsEnabled,
        ...(options as unknown as GraphqlOptions),
      })
      return settings.isEnabled ? serve(parts, settings, stops) : disabled()
    },
    async stop() {
      await Promise.all([...stops].map((stop) => stop()))
    },
  }
}

async function serve(
  { feed, clock, logger }: GraphqlParts,
  settings: GraphqlSettings,
  stops: Set<() => Promise<void>>,
): Promise<LiveGraphql> {
  const graphql = await loadGraphql()
  const logRepeatedly = createThrottledLog({ logger, clock })
  const schema = createSchema({ graphql, feed, settings, logRepeatedly })
  let clients = 0
  const shared = {
    ...{ graphql, feed, clock, settings, logRepeatedly },
    prepare: createPrepare(graphql, schema, settings),
    isFull: () => clients >= settings.maxClients,
    enter: () => clients < settings.maxClients && ++clients > 0,
    leave: () => void clients--,
  }
  const handler = createStreamHandler(shared)
  return {
    schema,
    handler,
    node: toNodeHandler(handler),
    async attach(server, options = {}) {
      const { detach, stop } = await attachTo(server, options, shared)
      stops.add(stop)
      return { detach: () => detach().finally(() => stops.delete(stop)) }
    },
  }
}

/** As if it were not there. */
function disabled(): LiveGraphql {
  const handler = async () => toProblem(new Refusal(404, 'There is nothing here.'), { unread: true })
  return { schema: null, handler, node: toNodeHandler(handler), attach: async () => ({ detach: async () => {} }) }
}
