/** The schema: subscriptions, and one query because GraphQL wants one. */
import type { GraphQLFieldResolver, GraphQLSchema, OperationDefinitionNode } from 'graphql'
import { AftercommitError } from '../errors.ts'
import type { EventKind } from '../events/index.ts'
import type { ThrottledLog } from '../runtime/index.ts'
import { VERSION } from '../version.ts'
import type { Feed, ResumeToken } from './feed.ts'
import { checkAsked } from './filter.ts'
import type { Connection } from './graphql-connection.ts'
import { answerSize, toGraphqlEvent } from './graphql-event.ts'
import { type Copies, copiesOf } from './graphql-limits.ts'
import type { GraphqlSettings } from './graphql-options.ts'
import type { GraphqlModule } from './graphql-peers.ts'
import { Source, type SourceRequest, type Told } from './graphql-source.ts'
import { parseToken } from './token.ts'

const SDL = `
"Any JSON. A number that a double does not hold is text."
scalar JSON

enum EventKind { created updated deleted custom }

input AggregateInput { type: String!, id: ID }

type Event {
  id: ID!
  type: String!
  kind: EventKind!
  "Place in the log, as text."
  position: String!
  "Subscribe with \`from\` set to it to go on after this event."
  token: String!
  aggregateType: String
  aggregateId: ID
  version: Int
  tenant: String
  occurredAt: String
  recordedAt: String
  payload: JSON
  changes: JSON
  previous: JSON
}

type Query { version: String! }

"""
Begins now, or after the token \`from\`. Ends with an error whose extensions have a \`code\` (LAGGED, RESYNC, STOPPED or
FAILED with the \`token\` to subscribe from; REVOKED without), and never without one. An event whose answer would be too
large is told as an error with the code TOO_LARGE and its \`token\`, and the subscription goes on.
"""
type Subscription {
  resourceCreated(type: String!, id: ID, from: String): Event!
  resourceUpdated(type: String!, id: ID, from: String): Event!
  resourceDeleted(type: String!, id: ID, from: String): Event!
  resourceChanged(type: String!, id: ID, kinds: [EventKind!] = [created, updated, deleted], from: String): Event!
  events(types: [String!], aggregate: AggregateInput, kinds: [EventKind!], from: String): Event!
}
`

export interface SchemaParts {
  readonly graphql: GraphqlModule
  readonly feed: Feed
  readonly settings: GraphqlSettings
  readonly logRepeatedly: ThrottledLog
}

interface Arguments {
  readonly type?: string | undefined
  readonly id?: string | null | undefined
  readonly types?: readonly string[] | null | undefined
  readonly kinds?: readonly EventKind[] | null | undefined
  readonly aggregate?: { readonly type: string; readonly id?: string | null | undefined } | null | undefined
  readonly from?: string | null | undefined
}

export function createSchema({ graphql, feed, settings, logRepeatedly }: SchemaParts): GraphQLSchema {
  const { GraphQLError, buildSchema } = graphql
  const schema = buildSchema(SDL)
  schema.getQueryType()!.getFields().version!.resolve = () => VERSION

  const subscribe = (kinds?: readonly EventKind[]): GraphQLFieldResolver<unknown, Connection, Arguments> => {
    return (_, given, connection) => {
      if (!isConnection(connection)) throw new GraphQLError('This schema is served by `handler`, `node` and `attach`.')
      const asked = { kinds, ...given }
      try {
        return new Source(feed, connection, { ...toWanted(asked), ...settingsOf(settings) }, logRepeatedly)
      } catch (error) {
        if (!(error instanceof AftercommitError)) throw error
        throw new GraphQLError(error.message, { extensions: { code: error.code } })
      }
    }
  }
  const copies = new WeakMap<OperationDefinitionNode, Copies>()
  const resolve: GraphQLFieldResolver<Told, Connection> = (told, _, __, { operation, fragments }) => {
    if (told.kind === 'event') {
      if (!copies.has(operation)) copies.set(operation, copiesOf(operation, fragments))
      const size = answerSize(told, copies.get(operation)!)
      if (size <= settings.maxAnswerBytes) return toGraphqlEvent(told)
      const message = `The answer would have ${size} bytes, more than ${settings.maxAnswerBytes}. Ask for fewer fields of this event.`
      throw new GraphQLError(message, { extensions: { code: 'TOO_LARGE', token: told.token } })
    }
    throw new GraphQLError(told.message, { extensions: { code: told.code, token: told.token } })
  }

  const fields = schema.getSubscriptionType()!.getFields()
  for (const [name, kinds] of Object.entries(KINDS)) {
    Object.assign(fields[name]!, { subscribe: subscribe(kinds), resolve })
  }
  return schema
}

const KINDS: Readonly<Record<string, readonly EventKind[] | undefined>> = {
  resourceCreated: ['created'],
  resourceUpdated: ['updated'],
  resourceDeleted: ['deleted'],
  resourceChanged: undefined,
  events: undefined,
}

/** Nobody else's execution gets a feed without having been admitted. */
function isConnection(context: unknown): context is Connection {
  return typeof context === 'object' && context !== null && 'onRevoked' in context
}

function settingsOf({ on, maxBuffered }: GraphqlSettings): Pick<SourceRequest, 'on' | 'maxBuffered'> {
  return { on, maxBuffered }
}

function toWanted({ type, id, types, kinds, aggregate, from }: Arguments): Omit<SourceRequest, 'on' | 'maxBuffered'> {
  const wanted = type === undefined ? aggregate : { type, id }
  if (types) checkAsked(types)
  return {
    types: types ?? ['*'],
    kinds: kinds ?? undefined,
    aggregate: wanted ? { type: wanted.type, id: wanted.id ?? undefined } : undefined,
    from: toToken(from),
  }
}

function toToken(from: string | null | undefined): ResumeToken | undefined {
  if (from === null || from === undefined) return undefined
  const token = parseToken(from)
  if (token !== undefined) return token
  throw new AftercommitError('BAD_OPTION', '`from` is no resume token. Give the `token` of an event, such as "1.42".')
}
