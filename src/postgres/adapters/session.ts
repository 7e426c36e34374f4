/**
 * The sessions of client libraries that may be passed as a transaction, by the part of their shape that a transaction has
 * and a pool has not. Without imports: none of the libraries has to be installed.
 */
import type { Queryable } from '../queryable.ts'

/** The client of pg that ran BEGIN. A pool has no `escapeIdentifier`. */
interface PgClient {
  // biome-ignore lint/suspicious/noExplicitAny: overloaded in pg.
  query(...args: any[]): any
  escapeIdentifier(text: string): string
}

/** The `sql` of postgres.js that `sql.begin` or `sql.reserve` gives. */
type PostgresJsTransaction = { unsafe(query: string): unknown } & (
  | { savepoint(fn: never): unknown }
  | { release(): void }
)

/** The `tx` of Drizzle's `db.transaction`. */
interface DrizzleTransaction {
  execute(query: never): unknown
  rollback(): never
}

/** The `trx` of Kysely's `db.transaction().execute`. */
interface KyselyTransaction {
  readonly isTransaction: true
  executeQuery(query: never): unknown
}

/** The client that Prisma's `$transaction(async (tx) => …)` gives. */
interface PrismaTransaction {
  $queryRawUnsafe(query: string): unknown
  $executeRawUnsafe(query: string): unknown
  readonly $connect?: never
}

/** A transaction of the caller: of this library or of one that it knows. A pool or root client is none. */
export type CallerTransaction =
  | Queryable
  | PgClient
  | PostgresJsTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | PrismaTransaction

/** A transaction, pool or root client of the caller. */
export type CallerSession =
  | CallerTransaction
  // biome-ignore lint/suspicious/noExplicitAny: overloaded in pg.
  | { query(...args: any[]): any; connect(...args: any[]): any }
  | { unsafe(query: string): unknown; begin(fn: never): unknown }
  | { execute(query: never): unknown; transaction(fn: never): unknown }
  | { executeQuery(query: never): unknown; transaction(): unknown }
  | { $queryRawUnsafe(query: string): unknown; $executeRawUnsafe(query: string): unknown }
