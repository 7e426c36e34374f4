import { randomBytes } from 'node:crypto'

/** Names one claim. Chosen here, so that a claim whose answer got lost can be given back. */
export function newToken(): bigint {
  return randomBytes(8).readBigUInt64BE() >> 1n
}
