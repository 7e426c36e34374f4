/** The packages behind GraphQL are optional: each is loaded when it is first needed, by the name users install it under. */
import { AftercommitError } from '../errors.ts'

/** By `import`, as those packages load theirs: GraphQL refuses a schema that was made by another copy of itself. */
export const loadGraphql = () => load('graphql', 'ac.live.graphql()', () => import('graphql'))
export const loadGraphqlSse = () => load('graphql-sse', 'GraphQL over SSE', () => import('graphql-sse'))
export const loadGraphqlWs = () => load('graphql-ws', 'GraphQL over WebSockets', () => import('graphql-ws'))
export const loadWs = () => load('ws', 'GraphQL over WebSockets', () => import('ws'))

export type GraphqlModule = typeof import('graphql')

export async function load<Module>(name: string, use: string, importIt: () => Promise<Module>): Promise<Module> {
  try {
    return await importIt()
  } catch (cause) {
    if (!isMissing(cause, name)) throw cause
    throw new AftercommitError(
      'PEER_MISSING',
      `The package "${name}" is not installed, so ${use} cannot be used. Install it: npm install ${name}`,
      { cause },
    )
  }
}

/** A package that is there and lacks one of its own is another matter. */
function isMissing(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || (error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') return false
  return error.message.includes(`'${name}'`)
}
