/**
 * Everything between this library and a Postgres server. It promises that a session handed out is alive and outside any
 * transaction, that a transaction ends in a way the caller can name, that lost connections are made again for ever, and
 * that a statement joins whichever transaction it is given. It relies on nothing but `pg`, loaded at first use.
 *
 * Start with `queryable.ts` (the port all statements go through), then `database.ts` (the pools), `transaction.ts`,
 * `adapters/` (other libraries' transactions), `listener.ts` and `migrate.ts`.
 */
export { toQueryable, toTransaction } from './adapters/index.ts'
export type { CallerSession, CallerTransaction } from './adapters/session.ts'
export { type Audit, type AuditEntry, type AuditedAct, type AuditFilter, createAudit, recordAudit } from './audit.ts'
export { type Commits, type Committed, committedBetween } from './commits.ts'
export { createDatabase, type Database, type DatabaseOptions } from './database.ts'
export { createDatabaseTime, type DatabaseTime } from './database-time.ts'
export type { ConnectionParts, ConnectionTarget, Role } from './driver.ts'
export { loadEmbedded } from './embedded.ts'
export { quoteIdentifier, quoteLiteral, type SchemaName, schemaName, shorten } from './identifiers.ts'
export { assertSameDatabase, type DatabaseIdentity } from './identity.ts'
export { type Address, addressOf, inspectServer, type ServerFacts } from './inspect.ts'
export { selectServerSettings } from './inspect-statements.ts'
export { createListener, type Listener, type ListenerMode, type ListenerOptions, type ProcessLock } from './listener.ts'
export { type MigrateOptions, type MigrateResult, type MigrationStep, migrate } from './migrate.ts'
export { migrationScript, wholeScript } from './migration-script.ts'
export { checksumOf, loadMigrations, type Migration } from './migrations.ts'
export type { Pool, PoolStats } from './pool.ts'
export { detectPath, type Path } from './pooler.ts'
export type { Parameter, Queryable, QueryOptions, QueryResult } from './queryable.ts'
export { type RepeatOptions, withRetry } from './retry.ts'
export { grantMonitor, grantRole } from './roles.ts'
export { SCHEMA_LEVEL, schemaTooNew, selectSchemaLevel } from './schema-level.ts'
export { assertSchemaUsable, type SchemaState, type SchemaStatus, schemaStatus } from './schema-status.ts'
export { assertServerVersion, type WaitOptions, waitUntilReachable } from './server.ts'
export { type Finding, type FindingLevel, ok, serverFindings } from './server-findings.ts'
export type { Session } from './session.ts'
export { loadSqlFiles, type SqlFile, type SqlFiles } from './sql-files.ts'
export {
  classify,
  type ErrorClass,
  endsSession,
  isRepeatable,
  isServerFault,
  isStorageFault,
  SQLSTATE,
  sqlstateOf,
} from './sqlstate.ts'
export { SERVER } from './statements.ts'
export {
  isTransaction,
  mayHaveHappened,
  OutcomeUnknownError,
  type Transaction,
  type TransactionOptions,
} from './transaction.ts'
export type { Statement } from './two-trips.ts'
