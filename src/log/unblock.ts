/**
 * Ends what holds the frontier back. There is no other cure: a number that is skipped by hand would be lost for ever if
 * its transaction committed after all, and nothing can be written in its place while that transaction is open.
 */
import { AftercommitError } from '../errors.ts'
import { type Database, quoteLiteral, recordAudit, SQLSTATE, sqlstateOf } from '../postgres/index.ts'
import { describeHolders, type Holder } from './frontier-statements.ts'
import { describeHolder } from './log-findings.ts'
import { rollbackPrepared, terminateHolder } from './unblock-statements.ts'

/** A session by its process id on the server, or a prepared transaction by its name. */
export type UnblockTarget = { readonly pid: number } | { readonly gid: string }

export interface UnblockRequest {
  /** Who asked for it; kept in the audit. */
  readonly who: string
  readonly reason?: string | undefined
}

/** Ends a transaction that holds the frontier back, and returns what it was. Anything else is left alone. */
export async function unblock(database: Database, target: UnblockTarget, request: UnblockRequest): Promise<Holder> {
  const holder = (await describeHolders(database.control)).find((one) =>
    'pid' in target ? one.pid === target.pid : one.preparedGid === target.gid,
  )
  if (holder === undefined) throw notAHolder(target)
  // Written first: a trace of an act that failed is better than an act without a trace. ROLLBACK PREPARED cannot be in
  // one transaction with it.
  await audit(database, 'log.unblock', holder, request)
  try {
    await end(database, holder, target)
  } catch (error) {
    await audit(database, 'log.unblock_failed', holder, request)
    throw sqlstateOf(error) === SQLSTATE.insufficientPrivilege ? notAllowed(holder, error) : error
  }
  return holder
}

async function end(database: Database, holder: Holder, target: UnblockTarget): Promise<void> {
  if (holder.preparedGid !== null) return rollbackPrepared(database, quoteLiteral(holder.preparedGid))
  const outcome = await terminateHolder(database, holder.pid!)
  if (outcome === 'no holder') throw notAHolder(target)
  if (outcome === 'still there') {
    throw new AftercommitError(
      'TIMED_OUT',
      `${describeHolder(holder)} was told to end and has not yet; a large rollback takes its time. Look again: aftercommit status`,
    )
  }
}

function audit(database: Database, what: string, holder: Holder, { who, reason }: UnblockRequest): Promise<void> {
  const target = holder.preparedGid === null ? `pid ${holder.pid}` : `gid ${holder.preparedGid}`
  const { pid, preparedGid: gid, application, user, state, ageSeconds: age_seconds } = holder
  const before = { pid, gid, application, user, state, age_seconds }
  return recordAudit(database, { who, what, target, before, ...(reason === undefined ? {} : { reason }) })
}

function notAHolder(target: UnblockTarget): AftercommitError {
  const name = 'pid' in target ? `Session ${target.pid}` : `Prepared transaction ${quoteLiteral(target.gid)}`
  return new AftercommitError(
    'NOT_A_HOLDER',
    `${name} does not hold the frontier back, or no longer does, so nothing was ended. Look again: aftercommit status`,
  )
}

function notAllowed(holder: Holder, cause: unknown): AftercommitError {
  const need =
    holder.preparedGid === null
      ? `pg_signal_backend (grant pg_signal_backend to <role>), and a superuser's session only a superuser may end`
      : `to be ${holder.user ?? 'its owner'}, who prepared it, or a superuser`
  return new AftercommitError(
    'NOT_ALLOWED',
    `${describeHolder(holder)} was not ended: this database role lacks the right. It needs ${need}.`,
    { cause },
  )
}
