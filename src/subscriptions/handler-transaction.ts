/**
 * Refuses a transaction that a transactional handler opens beside its own. Such a handler holds one connection and waits
 * for a second: as many of them as there are connections wait for each other, and none of them can go on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { AftercommitError } from '../errors.ts'
import type { Database, Transaction } from '../postgres/index.ts'

interface HandlerTransaction {
  readonly subscription: string
  readonly database: Database
  readonly tx: Transaction
}

const handlers = new AsyncLocalStorage<HandlerTransaction>()

/** Runs `fn` as the handler of a subscription with an open transaction. */
export function insideHandler<T>(handler: HandlerTransaction, fn: () => T): T {
  return handlers.run(handler, fn)
}

/** Throws NESTED_TRANSACTION inside a transactional handler whose transaction is open on a connection of `database`. */
export function refuseInsideHandler(database: Database): void {
  const handler = handlers.getStore()
  if (handler === undefined || handler.tx.ended || handler.database !== database) return
  throw new AftercommitError(
    'NESTED_TRANSACTION',
    `The handler of "${handler.subscription}" opened a transaction with ac.transaction while its own is open, so it ` +
      'was refused: handlers that each wait for a second connection block each other for ever. Write through ' +
      '`context.tx`, which commits with the checkpoint, or leave out `transactional`.',
  )
}
