import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

/**
 * Everything `import … from 'aftercommit'` offers, by the module it comes from. A name is added here on purpose, together
 * with a line in the changelog; a name that leaves breaks somebody's program.
 */
const surface: Record<string, string[]> = {
  './aftercommit.ts': ['createAftercommit'],
  './cache/index.ts': ['type Cache', 'type CacheEntryOptions', 'type CacheLoad', 'type CacheOptions'],
  './capture/index.ts': [
    'type BackfillOptions',
    'type BackfillReport',
    'type Capture',
    'type CaptureOptions',
    'type CaptureStep',
    'type CapturedTable',
    'type DeclaredTable',
    'type DeclaredTables',
    'type ImportOptions',
    'type ImportReport',
    'type ImportedPart',
    'type PendingCapture',
  ],
  './dead-letters/index.ts': [
    'type DeadLetter',
    'type DeadLetters',
    'type ErrorRecord',
    'type LetterAction',
    'type LetterCause',
    'type LetterFilter',
    'type LetterKind',
    'type LetterStatus',
  ],
  './delivery/index.ts': [
    'type Deliveries',
    'type DeliveryAction',
    'type DeliveryChoice',
    'type DeliveryDetails',
    'type DeliveryFilter',
    'type DeliveryKind',
    'type DeliveryPause',
    'type DeliveryRecord',
    'type DeliveryState',
    'type DestinationState',
    'type OrphanedWork',
    'type PauseTarget',
    'type WorkName',
  ],
  './errors.ts': ['AftercommitError', 'ERROR_CODES', 'type ErrorCode'],
  './events/index.ts': [
    'AftercommitEvent',
    'EventDefinitionError',
    'ExactNumber',
    'InvalidPayloadError',
    'JsonError',
    'SchemaVersionTooNewError',
    'Undecodable',
    'UnknownEventError',
    'UpcastFailedError',
    'changedFrom',
    'changedTo',
    'defineEvents',
    'eventSerializer',
    'fieldChanged',
    'fromCloudEvent',
    'parseJson',
    'payloadAs',
    'stringifyJson',
    'toCloudEvent',
    'toWire',
    'type Change',
    'type Changes',
    'type CloudEvent',
    'type EventDefinitions',
    'type EventKind',
    'type EventMetadata',
    'type EventName',
    'type EventOf',
    'type MetadataInput',
    'type Payload',
    'type PayloadInput',
    'type StandardSchema',
  ],
  './hooks/index.ts': [
    'AUTH_TYPES',
    'auditHook',
    'createBroadcaster',
    'eventedStorage',
    'reloadHook',
    'revocationHook',
    'type AuditHookOptions',
    'type AuditRecord',
    'type AuditStore',
    'type AuthEvent',
    'type AuthInput',
    'type AuthType',
    'type BroadcastReader',
    'type Broadcaster',
    'type BroadcasterOptions',
    'type EventedStorageOptions',
    'type HookContext',
    'type HookOptions',
    'type HookRelay',
    'type HookScope',
    'type HookStartContext',
    'type HookStatus',
    'type Hooks',
    'type Missed',
    'type ReloadHookOptions',
    'type Repository',
    'type ResourceEvent',
    'type RevocationHook',
    'type RevocationHookOptions',
    'type RevocationStore',
    'type StorageEvent',
    'type SystemEvent',
  ],
  './instance.ts': [
    'type Aftercommit',
    'type DrainResult',
    'type Emit',
    'type EmitNow',
    'type EmitOf',
    'type EmittingTransaction',
    'type MigrateRequest',
    'type SearchDocuments',
    'type StartOptions',
  ],
  './live/index.ts': [
    'type AttachOptions',
    'type CorsOptions',
    'type GraphqlAttachment',
    'type GraphqlOptions',
    'type InboundHandler',
    'type InboundIdentity',
    'type InboundOptions',
    'type Live',
    'type LiveGraphql',
    'type SseHandler',
    'type SseOptions',
  ],
  './log/index.ts': [
    'VersionConflictError',
    'type EmitInput',
    'type Emitted',
    'type EventTrace',
    'type Holder',
    'type ListOptions',
    'type Log',
    'type LogStatus',
    'type PartitionStatus',
    'type ProcessStatus',
    'type ServerStatus',
    'type StartPoint',
    'type Status',
    'type UnblockRequest',
    'type UnblockTarget',
    'type UpkeepReport',
  ],
  './observers-on-demand.ts': [
    'defineActionType',
    'type ActionContext',
    'type ActionRequest',
    'type ActionResult',
    'type ActionType',
    'type ObserverSummary',
    'type Observers',
    'type PreparedAction',
    'type Preview',
    'type ReindexOptions',
    'type ReindexProblem',
    'type ReindexReport',
    'type ReindexedIndex',
  ],
  './options.ts': [
    'type AftercommitOptions',
    'type DeadLetterOptions',
    'type LogOptions',
    'type ObserversOptions',
    'type RuntimeOptions',
  ],
  './postgres/index.ts': [
    'OutcomeUnknownError',
    'type Audit',
    'type AuditFilter',
    'type AuditedAct',
    'type CallerSession',
    'type CallerTransaction',
    'type Finding',
    'type FindingLevel',
    'type MigrateResult',
    'type Queryable',
    'type TransactionOptions',
  ],
  './projections/index.ts': [
    'type ProjectionHandle',
    'type ProjectionOptions',
    'type ProjectionState',
    'type Projections',
  ],
  './push/index.ts': ['type Push', 'type PushDevice', 'type PushSubscriptionInput'],
  './search/index.ts': [
    'type FoundDocument',
    'type Search',
    'type SearchHit',
    'type SearchIndex',
    'type SearchOptions',
  ],
  './sms/index.ts': ['type FetchHandler', 'type Sms', 'type StatusCallbackOptions'],
  './receipt/index.ts': [
    'toReceiptJson',
    'type ActionPart',
    'type CausedEvent',
    'type Mark',
    'type ObserverPart',
    'type OpenItem',
    'type ReactionState',
    'type Receipt',
    'type ReceiptAttempt',
    'type ReceiptCounts',
    'type ReceiptHandle',
    'type ReceiptReaction',
    'type SettleOptions',
    'type Settlement',
    'type SubscriptionPart',
    'type WorkPart',
  ],
  './runtime/index.ts': [
    'consoleLogger',
    'openTelemetry',
    'runWithCause',
    'type Clock',
    'type HealthReport',
    'type Logger',
    'type Telemetry',
  ],
  './subscriptions/index.ts': [
    'GiveUp',
    'RetryAfter',
    'SinkUnavailable',
    'idempotent',
    'memorySink',
    'type HandlerContext',
    'type MemorySink',
    'type OperatorAction',
    'type Processed',
    'type RelayHandle',
    'type RelayOptions',
    'type SeekPreview',
    'type Sink',
    'type SinkFeatures',
    'type SinkMessage',
    'type SubscriptionHandle',
    'type SubscriptionOptions',
    'type SubscriptionState',
    'type Subscriptions',
    'type VerifyReport',
  ],
  './version.ts': ['VERSION'],
  './webhook-signature.ts': ['verifyWebhook', 'type ReceivedHeaders', 'type VerifyWebhookOptions'],
  './workflows/index.ts': [
    'UndecodableEventError',
    'UniqueKeyTakenError',
    'WorkflowPausedError',
    'accept',
    'after',
    'at',
    'defineWorkflow',
    'exploreWorkflow',
    'reject',
    'retraceWorkflow',
    'toDot',
    'toMermaid',
    'type Accept',
    'type AcceptOptions',
    'type CheckFinding',
    'type CheckOptions',
    'type CheckReport',
    'type CheckedInput',
    'type CheckedType',
    'type DecideContext',
    'type Decision',
    'type DifferingEvent',
    'type DifferingPath',
    'type EffectContext',
    'type EffectHandler',
    'type EffectHandlers',
    'type EffectWork',
    'type EventVersions',
    'type ExecuteOptions',
    'type ExploreOptions',
    'type HistoryOptions',
    'type InstanceState',
    'type InstanceSummary',
    'type ListWorkflowsOptions',
    'type MachineState',
    'type MachineTransition',
    'type ObserveOptions',
    'type Outcome',
    'type RegisterOptions',
    'type Reject',
    'type RetraceOptions',
    'type ScheduleOptions',
    'type Schedules',
    'type SnapshotOptions',
    'type StateMachine',
    'type StoredSchedule',
    'type Timer',
    'type TimerOptions',
    'type TimerSummary',
    'type Workflow',
    'type WorkflowAction',
    'type WorkflowLetter',
    'type WorkflowOptions',
    'type WorkflowPage',
    'type Workflows',
  ],
}

describe('the public surface', () => {
  it('is exactly the list in this file', () => {
    const index = readFileSync(fileURLToPath(new URL('../src/index.ts', import.meta.url)), 'utf8')
    expect(readExports(index)).toEqual(surface)
  })

  it('offers no name twice', () => {
    const names = Object.values(surface)
      .flat()
      .map((entry) => entry.replace('type ', ''))
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })
})

describe('the reader of exports', () => {
  it('tells values from types, sees new names, and sorts', () => {
    const code = `
      export { b, type A } from './x.ts'
      export type { D, C as E } from './x.ts'
      export { f as g } from './y.ts'`
    expect(readExports(code)).toEqual({ './x.ts': ['b', 'type A', 'type D', 'type E'], './y.ts': ['g'] })
  })

  it('refuses a surface that is not written down name by name', () => {
    expect(() => readExports(`export * from './x.ts'`)).toThrow('by name')
    expect(() => readExports('export const x = 1')).toThrow('by name')
  })
})

/** Names by module, values before types, each group sorted. */
function readExports(code: string): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (const statement of ts.createSourceFile('index.ts', code, ts.ScriptTarget.ESNext).statements) {
    if (ts.isImportDeclaration(statement)) continue
    if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined) throw notByName()
    if (!ts.isNamedExports(statement.exportClause) || statement.moduleSpecifier === undefined) throw notByName()
    const module = (statement.moduleSpecifier as ts.StringLiteral).text
    const names = statement.exportClause.elements.map(({ name, isTypeOnly }) => {
      return statement.isTypeOnly || isTypeOnly ? `type ${name.text}` : name.text
    })
    found[module] = [...(found[module] ?? []), ...names].sort(valuesFirst)
  }
  return found
}

function valuesFirst(a: string, b: string): number {
  const types = Number(a.startsWith('type ')) - Number(b.startsWith('type '))
  if (types !== 0) return types
  return a < b ? -1 : 1
}

function notByName(): Error {
  return new Error('src/index.ts is to re-export by name, module by module, so that the surface grows on purpose.')
}
