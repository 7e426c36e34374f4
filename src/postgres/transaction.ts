/**
 * One transaction on one connection of ours, from BEGIN to a known end. The ends, failures first:
 *
 * - the connection dies before COMMIT: rolled back by the server, the error says so
 * - the connection dies during COMMIT: nobody can know, so `OutcomeUnknownError`
 * - COMMIT is answered with ROLLBACK (a failed statement whose error was swallowed): `TX_ABORTED`
 * - `fn` throws or the signal aborts: rolled back, the reason is rethrown
 * - committed: hooks run, the result is returned
 */
import type { Client } from 'pg'
import { AftercommitError } from '../errors.ts'
import { abortable, type Cause } from '../runtime/index.ts'
import { destroyClient, runQuery } from './driver.ts'
import { prepareNoMore, runRepeatedInside } from './prepared.ts'
import type { Parameter, Queryable, QueryOptions, QueryResult } from './queryable.ts'
import { classify, endsSession, SQLSTATE, sqlstateOf } from './sqlstate.ts'

export interface TransactionOptions {
  isolation?: 'read committed' | 'repeatable read' | 'serializable'
  readOnly?: boolean
  /** Fails a statement with 55P03 that waits longer than this for a lock. */
  lockTimeoutMs?: number
  /** Fails a statement with 57014 that runs longer than this. */
  statementTimeoutMs?: number
  /** Rolls back when it aborts before COMMIT was sent; the transaction then rejects with its reason. */
  signal?: AbortSignal
  /** False: changes of captured tables are no events, because the function emits for itself. Default: true. */
  capture?: boolean
}

export interface Transaction extends Queryable {
  readonly [TRANSACTION]: true
  /** True once COMMIT or ROLLBACK was sent: every further call is refused with TX_ENDED. */
  readonly ended: boolean
  /** True once the connection was lost before COMMIT was sent: nothing of the transaction happened. */
  readonly lost: boolean
  /**
   * Runs `fn`; if it throws, undoes only what happened inside it and rethrows, and the transaction goes on. Savepoints
   * nest; two at a time side by side would undo each other.
   */
  savepoint<T>(fn: () => Promise<T>): Promise<T>
  /** Called once after COMMIT succeeded. A hook of a savepoint that was undone is forgotten. */
  onCommit(hook: () => void): void
}

const TRANSACTION = Symbol.for('aftercommit.transaction')

export function isTransaction(value: unknown): value is Transaction {
  return typeof value === 'object' && value !== null && TRANSACTION in value
}

/** The answer to COMMIT was lost. Repeating is right only for work that may happen twice. */
export class OutcomeUnknownError extends AftercommitError {
  constructor(cause: unknown) {
    super(
      'OUTCOME_UNKNOWN',
      'The connection was lost while COMMIT was under way, so the transaction may or may not have happened. ' +
        'Look for its effects before repeating it, or repeat it only if it is idempotent.',
      { cause },
    )
  }
}

/** The answer of a statement that commits by itself was lost. Where no connection could be had, nothing was sent. */
export function mayHaveHappened(error: unknown): boolean {
  return !(error instanceof AftercommitError) && endsSession(error)
}

/** Where a transaction is begun. */
interface Surroundings {
  readonly cause?: Cause | undefined
  /** Of the span under way, where the database has a use for it. */
  readonly traceparent?: string | undefined
  readonly onHookError: (error: unknown) => void
}

export async function runTransaction<T>(
  client: Client,
  schema: string,
  fn: (tx: Transaction) => Promise<T>,
  { signal, ...options }: TransactionOptions,
  { cause, traceparent, onHookError }: Surroundings,
): Promise<T> {
  await client.query(`${beginText(options)}${causeText(client, cause, traceparent)}`)
  const state: State = { ended: false, firstError: undefined, lost: undefined, savepoints: 0, hooks: [] }
  const tx = createTransaction(client, schema, state)
  const onLost = (error: Error) => {
    state.lost ??= error
  }
  const onAbort = () => destroyClient(client)
  client.on('error', onLost)
  signal?.addEventListener('abort', onAbort, { once: true })
  let result: T
  try {
    result = await (signal ? abortable(fn(tx), signal) : fn(tx))
  } catch (error) {
    state.ended = true
    await rollBack(client, signal)
    throw error
  } finally {
    state.ended = true
    client.removeListener('error', onLost)
    signal?.removeEventListener('abort', onAbort)
  }
  await commit(client, state)
  for (const hook of state.hooks) runHook(hook, onHookError)
  return result
}

interface State {
  ended: boolean
  /** Kept to explain a COMMIT that turns out to be a ROLLBACK. */
  firstError: unknown
  /** How the session ended while the function still ran. COMMIT cannot have been sent then. */
  lost: unknown
  savepoints: number
  hooks: (() => void)[]
}

function createTransaction(client: Client, schema: string, state: State): Transaction {
  async function query<Row>(
    text: string,
    values?: readonly Parameter[],
    { repeated = false }: QueryOptions = {},
  ): Promise<QueryResult<Row>> {
    if (state.ended) throw txEnded('has already ended')
    // A prepared statement that is gone would abort the transaction.
    if (DEALLOCATES.test(text)) prepareNoMore(client)
    try {
      return await (repeated ? runRepeatedInside<Row>(client, text, values) : runQuery<Row>(client, text, values))
    } catch (error) {
      state.firstError ??= error
      if (endsSession(error)) state.lost ??= error
      throw error
    }
  }

  async function savepoint<T>(fn: () => Promise<T>): Promise<T> {
    state.savepoints += 1
    const name = `aftercommit_${state.savepoints}`
    const hooksBefore = state.hooks.length
    await query(`savepoint ${name}`)
    const errorBefore = state.firstError
    try {
      const result = await fn()
      await query(`release savepoint ${name}`)
      return result
    } catch (error) {
      if (!state.ended && state.lost === undefined) {
        await query(`rollback to savepoint ${name}`)
        await query(`release savepoint ${name}`)
        state.hooks.length = hooksBefore
        state.firstError = errorBefore
      }
      throw error
    }
  }

  return {
    [TRANSACTION]: true,
    schema,
    sendsUntyped: true,
    get ended() {
      return state.ended
    },
    get lost() {
      return state.lost !== undefined
    },
    query,
    savepoint,
    onCommit(hook) {
      if (state.ended) throw txEnded('has already ended')
      state.hooks.push(hook)
    },
  }
}

const DEALLOCATES = /\bdeallocate\b/i

/** One message for BEGIN and its settings: one round trip, and nothing outlives the transaction. */
function beginText({
  isolation,
  readOnly,
  lockTimeoutMs,
  statementTimeoutMs,
  capture,
}: Omit<TransactionOptions, 'signal'>) {
  const level = isolation === undefined ? '' : ` isolation level ${isolation}`
  const access = readOnly === undefined ? '' : readOnly ? ' read only' : ' read write'
  return [
    `begin${level}${access}`,
    ...(lockTimeoutMs === undefined ? [] : [`set local lock_timeout = ${Math.ceil(lockTimeoutMs)}`]),
    ...(statementTimeoutMs === undefined ? [] : [`set local statement_timeout = ${Math.ceil(statementTimeoutMs)}`]),
    ...(capture === false ? ["set local aftercommit.capture = 'off'"] : []),
  ].join('; ')
}

/**
 * Settings that the SQL function `emit` reads, so that events of triggers and functions carry the chain on. In the message of BEGIN: it
 * costs no round trip. All of them are set, so that nothing of a setting of the session shows through.
 */
function causeText(client: Client, cause: Cause | undefined, current: string | undefined): string {
  if (cause === undefined) return current === undefined ? '' : settingText(client, 'traceparent', current)
  const { correlationId, causationId, depth, userId, tenant, traceparent = current } = cause
  const settings = {
    correlation_id: correlationId,
    causation_id: causationId,
    depth: String(depth + 1),
    user_id: userId,
    tenant,
    traceparent,
    actor_type: undefined,
    acting_for: undefined,
  }
  return Object.entries(settings)
    .map(([name, value = '']) => settingText(client, name, value))
    .join('')
}

function settingText(client: Client, name: string, value: string): string {
  return `; set local aftercommit.${name} = ${client.escapeLiteral(withoutNul(value))}`
}

/** NUL would end the message; `emit` refuses it anyway. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '')
}

async function rollBack(client: Client, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return destroyClient(client)
  try {
    await client.query('rollback')
  } catch {
    // The session ends, and the transaction with it; the error that led here is the one to report.
    destroyClient(client)
  }
}

async function commit(client: Client, state: State): Promise<void> {
  if (state.lost !== undefined) throw state.lost
  if (client.getTransactionStatus() === 'I') {
    throw txEnded('was ended by a COMMIT or ROLLBACK of its own before the function returned')
  }
  let command: string
  try {
    command = (await client.query('commit')).command
  } catch (error) {
    // An answer with a SQLSTATE is a refusal, and a refusal is a rollback. An immediate shutdown says 57P02 to
    // everybody, whatever they were doing.
    const unknown = classify(error) === 'connection' || sqlstateOf(error) === SQLSTATE.crashShutdown
    throw unknown ? new OutcomeUnknownError(error) : error
  }
  if (command === 'ROLLBACK') {
    throw new AftercommitError(
      'TX_ABORTED',
      'A statement of the transaction failed and its error was not passed on, so Postgres rolled everything back at ' +
        'COMMIT and nothing was written. Let the error propagate, or wrap what may fail in tx.savepoint().',
      { cause: state.firstError },
    )
  }
}

function runHook(hook: () => void, onError: (error: unknown) => void): void {
  try {
    hook()
  } catch (error) {
    onError(error)
  }
}

function txEnded(how: string): AftercommitError {
  return new AftercommitError(
    'TX_ENDED',
    `This transaction ${how}, so the call was refused. ` +
      'Await every call inside the function given to transaction(), and leave COMMIT to it.',
  )
}
