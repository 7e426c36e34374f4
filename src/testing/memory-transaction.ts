/** A transaction of the in-memory twin: what it emits is kept back until it commits, and forgotten if it does not. */
import { AftercommitError } from '../errors.ts'
import type { EventDefinitions } from '../events/index.ts'
import type { Emit, EmittingTransaction } from '../index.ts'
import { type EmitInput, type EmitRequest, type EmitSettings, type Emitted, emitEvent } from '../log/index.ts'
import type { Queryable } from '../postgres/index.ts'
import type { MemoryLog } from './memory-log.ts'

/** The words of a transaction that need no database. */
export type MemoryTransaction<D extends EventDefinitions = EventDefinitions> = Pick<
  EmittingTransaction<D>,
  'emit' | 'savepoint' | 'onCommit'
>

export interface OpenTransaction {
  /** What the function given to `transaction` gets. */
  readonly words: MemoryTransaction
  /** Publishes what was emitted. Throws, and publishes nothing, when it cannot. */
  commit(): void
  rollBack(): void
}

export function openTransaction(log: MemoryLog, settings: EmitSettings): OpenTransaction {
  const staging = log.begin()
  let hooks: (() => void)[] = []
  let ended = false
  /** Postgres refuses everything after a failed statement, until a savepoint before it is gone back to. */
  let failed: unknown

  // The same port as a database, so that everything before it is checked and completed by the code that runs in production.
  const port: Queryable = {
    schema: 'memory',
    async query(_text, values = []) {
      if (ended) throw txEnded()
      if (failed !== undefined) throw txAborted(failed)
      try {
        return { rows: [{ appended: log.append(staging, values) } as never], rowCount: 1 }
      } catch (error) {
        failed = error
        throw error
      }
    },
  }

  function emit(first: string | readonly EmitRequest[], event?: EmitInput): Promise<Emitted | Emitted[]> {
    return typeof first === 'string' ? emitEvent(port, settings, first, event ?? { payload: null }) : emitMany(first)
  }

  async function emitMany(requests: readonly EmitRequest[]): Promise<Emitted[]> {
    const before = staging.events.length
    const emitted: Emitted[] = []
    try {
      for (const request of requests) emitted.push(await emitEvent(port, settings, request.type, request))
    } catch (error) {
      staging.events.length = before
      throw error
    }
    return emitted
  }

  async function savepoint<T>(fn: () => Promise<T>): Promise<T> {
    const before = { events: staging.events.length, hooks: hooks.length, failed }
    try {
      return await fn()
    } catch (error) {
      staging.events.length = before.events
      hooks.length = before.hooks
      failed = before.failed
      throw error
    }
  }

  const words: MemoryTransaction = {
    emit: emit as Emit<EventDefinitions>,
    savepoint,
    onCommit(hook) {
      if (ended) throw txEnded()
      hooks.push(hook)
    },
  }
  return {
    words,
    commit() {
      ended = true
      if (failed !== undefined) {
        log.rollBack(staging)
        throw txAborted(failed)
      }
      log.commit(staging)
      const due = hooks
      hooks = []
      for (const hook of due) runHook(hook)
    },
    rollBack() {
      ended = true
      log.rollBack(staging)
    },
  }
}

/** The commit stands, whatever a hook does. */
function runHook(hook: () => void): void {
  try {
    hook()
  } catch {
    // In production it is a line in the log.
  }
}

function txEnded(): AftercommitError {
  return new AftercommitError(
    'TX_ENDED',
    'This transaction has already ended, so the call was refused. Await every call inside the function given to transaction().',
  )
}

function txAborted(cause: unknown): AftercommitError {
  return new AftercommitError(
    'TX_ABORTED',
    'An emit of the transaction failed and its error was not passed on, so nothing was emitted. ' +
      'Let the error propagate, or wrap what may fail in tx.savepoint().',
    { cause },
  )
}
