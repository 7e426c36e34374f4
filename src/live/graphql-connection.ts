import type { Admitted } from './admit.ts'

/** A client of GraphQL that was admitted, and the connection over which it subscribes. */
export interface Connection extends Admitted {
  readonly transport: 'graphql-ws' | 'graphql-sse'
  readonly signal: AbortSignal
  /** Called when a subscription was ended because its client was revoked. */
  onRevoked(): void
}
