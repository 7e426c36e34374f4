/** From the text of a client to something that can be executed, or the errors it gets. Nothing is parsed beyond the limits. */
import type { DocumentNode, ExecutionArgs, GraphQLError, GraphQLSchema } from 'graphql'
import type { Clock, ThrottledLog } from '../runtime/index.ts'
import type { Feed } from './feed.ts'
import type { Connection } from './graphql-connection.ts'
import { operationProblem } from './graphql-limits.ts'
import type { GraphqlSettings } from './graphql-options.ts'
import type { GraphqlModule } from './graphql-peers.ts'

/** As both protocols check it before. */
export interface Operation {
  readonly query: string
  readonly operationName?: string | null | undefined
  readonly variables?: Record<string, unknown> | null | undefined
}

export type Prepared =
  | { readonly args: ExecutionArgs & { readonly contextValue: Connection } }
  | { readonly errors: readonly GraphQLError[] }

export type Prepare = (operation: Operation, connection: Connection) => Prepared

/** What every transport is served with. */
export interface ServingParts {
  readonly feed: Feed
  readonly clock: Clock
  readonly logRepeatedly: ThrottledLog
  readonly settings: GraphqlSettings
  readonly prepare: Prepare
  /** Whether another client would be one too many. */
  readonly isFull: () => boolean
  /** Counts a client in; false when there are too many. */
  readonly enter: () => boolean
  readonly leave: () => void
}

/** A token takes at least one character; most take more. */
const MAX_TOKENS = 1_000

export function createPrepare(graphql: GraphqlModule, schema: GraphQLSchema, settings: GraphqlSettings): Prepare {
  const { GraphQLError, getOperationAST, NoSchemaIntrospectionCustomRule, parse, specifiedRules, validate } = graphql
  const { introspection, maxQueryBytes } = settings
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule]
  const refused = (message: string): Prepared => ({ errors: [new GraphQLError(message)] })

  return ({ query, operationName, variables }, connection) => {
    if (Buffer.byteLength(query) > maxQueryBytes) return refused(`An operation has at most ${maxQueryBytes} bytes.`)
    let document: DocumentNode
    try {
      document = parse(query, { maxTokens: MAX_TOKENS })
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] }
      throw error
    }
    const errors = validate(schema, document, rules)
    if (errors.length > 0) return { errors }
    const problem = operationProblem(document)
    if (problem !== undefined) return refused(problem)
    if (!getOperationAST(document, operationName)) return refused('It is not clear which operation is meant.')
    return { args: { schema, document, operationName, variableValues: variables, contextValue: connection } }
  }
}
