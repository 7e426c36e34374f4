import { randomFillSync } from 'node:crypto'

/** Names one claim. Chosen here, so that a claim whose answer got lost can be given back. */
export function newToken(): bigint {
  if (next === tokens.length) {
    randomFillSync(tokens)
    next = 0
  }
  return tokens[next++]! >> 1n
}

/** Many at a time: to ask for a few random bytes takes as long as to ask for many. */
const tokens = new BigUint64Array(128)
let next = tokens.length
