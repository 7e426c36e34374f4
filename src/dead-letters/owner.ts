import type { Queryable } from '../postgres/index.ts'

/** One ownership of one subscription: only the owner of this term writes its dead letters. */
export interface Owner {
  readonly id: string
  readonly term: bigint
  /** The start of the server on which the lease was taken; see SERVER. */
  readonly server: string
}

/** The checkpoint that moves with a dead letter. */
export interface MovedTo {
  readonly position: bigint
  readonly done: string
}

/** $1 is the subscription; the parameter is the term. */
export function isOurs(db: Queryable, term: string): string {
  return `exists (select from ${db.schema}.subscription_partitions where id = $1::text and term = (${term}::text)::bigint)`
}
