import { recordAudit } from '../postgres/index.ts'
import type { AuditStore } from './audit-hook.ts'
import type { AuditRecord } from './audit-record.ts'

/** Beside the acts of operators, in the table `audit` of the log's own schema. */
export const auditTable: AuditStore = {
  write: (record, { tx }) =>
    recordAudit(tx, {
      who: whoOf(record),
      what: record.type,
      target: record.entity === null ? record.id : `${record.entity} ${record.entityId}`,
      after: record,
      ...(record.reason !== null && { reason: record.reason }),
    }),
}

function whoOf({ actor: { kind, id } }: AuditRecord): string {
  return id === null ? kind : `${kind} ${id}`
}
