/**
 * One audit record per event in the whole cluster. It runs in a transaction that also moves its checkpoint: a record
 * written through `tx` is there once, whatever dies when; a store elsewhere goes by the id of the record.
 *
 * Storing a record may itself be an event, by capture or evented storage. What the hook causes carries its mark as the
 * cause, in the process as well as in the session of the transaction, and an event with that mark is never audited.
 */
import type { AnyEvent } from '../log/index.ts'
import type { Queryable } from '../postgres/index.ts'
import { currentCause, runWithCause } from '../runtime/index.ts'
import { type AuditRecord, actionOf, toAuditRecord } from './audit-record.ts'
import { auditTable } from './audit-table.ts'
import type { HookContext, HookOptions } from './hook.ts'

/** Kinds of changes, names of auth events, or the last part of a type, such as `placed`. */
export type AuditAction = string

export interface AuditHookOptions
  extends Pick<HookOptions, 'types' | 'entities' | 'enabled' | 'retry' | 'from' | 'timeout'> {
  /** `audit` unless told. */
  readonly name?: string | undefined
  /** The table `audit` in the schema of the log unless told. */
  readonly store?: AuditStore | undefined
  /** Which actions are recorded; all unless told. */
  readonly actions?: readonly AuditAction[] | undefined
}

export interface AuditStore {
  /** `tx` is a transaction of the database that holds the log. */
  write(record: AuditRecord, context: HookContext & { readonly tx: Queryable; readonly event: AnyEvent }): unknown
}

export function auditHook(options: AuditHookOptions = {}): HookOptions {
  const { name = 'audit', store = auditTable, actions, ...rest } = options
  // No name contains a slash: the mark of hook `a` is not the beginning of the mark of hook `a:b`.
  const mark = `audit:${name}/`
  return {
    ...rest,
    name,
    scope: 'cluster',
    transactional: true,
    async handle(event, context) {
      if (isOwn(event) || event.metadata.causationId?.startsWith(mark)) return
      if (actions !== undefined && !actions.includes(actionOf(event))) return
      const tx = context.tx as Queryable
      const causationId = mark + event.id
      await tx.query(`select set_config('aftercommit.causation_id', $1::text, true)`, [causationId])
      const cause = { ...currentCause(), correlationId: event.metadata.correlationId ?? event.id, causationId }
      await runWithCause({ depth: event.metadata.depth, ...cause }, async () =>
        store.write(toAuditRecord(event), { ...context, signal: context.signal, tx, event }),
      )
    },
  }
}

/** An event that this library emits for its own use, such as an invalidation of caches: no user and no client did that. */
function isOwn({ type }: AnyEvent): boolean {
  return type.startsWith('aftercommit.')
}
