/** What an instance offers; aftercommit.ts builds one. */
import type { Cache } from './cache/index.ts'
import type { Capture, CaptureStep } from './capture/index.ts'
import type { DeadLetters } from './dead-letters/index.ts'
import type { Deliveries } from './delivery/index.ts'
import type { EventDefinitions, EventName, EventOf, PayloadInput } from './events/index.ts'
import type { AuthInput, Broadcaster, Hooks } from './hooks/index.ts'
import type { Live } from './live/index.ts'
import type { EmitInput, Emitted, Log, Status, UpkeepReport } from './log/index.ts'
import type { Observers, ReindexOptions, ReindexReport } from './observers-on-demand.ts'
import type {
  Audit,
  CallerSession,
  CallerTransaction,
  Finding,
  MigrateOptions,
  MigrateResult,
  Parameter,
  Queryable,
  QueryResult,
  TransactionOptions,
} from './postgres/index.ts'
import type { ProjectionHandle, ProjectionOptions, Projections } from './projections/index.ts'
import type { Push } from './push/index.ts'
import type { Receipts } from './receipt/index.ts'
import type { Duration, HealthReport } from './runtime/index.ts'
import type { Search } from './search/index.ts'
import type { Sms } from './sms/index.ts'
import type {
  Processed,
  RelayHandle,
  RelayOptions,
  SubscriptionHandle,
  SubscriptionOptions,
  Subscriptions,
  VerifyReport,
} from './subscriptions/index.ts'
import type { Schedules, Workflows } from './workflows/index.ts'

/** Appends events: one, or many in one statement. */
export interface Emit<D extends EventDefinitions> {
  <Name extends EventName<D>>(type: Name, event: EmitInput<PayloadInput<D, Name>>): Promise<Emitted>
  (events: readonly EmitOf<D>[]): Promise<Emitted[]>
}

/** `Emit`, with or without a pool or client of the caller as the first argument. */
export interface EmitNow<D extends EventDefinitions> extends Emit<D> {
  <Name extends EventName<D>>(
    session: CallerSession,
    type: Name,
    event: EmitInput<PayloadInput<D, Name>>,
  ): Promise<Emitted>
  (session: CallerSession, events: readonly EmitOf<D>[]): Promise<Emitted[]>
}

/** One event of a batch. */
export type EmitOf<D extends EventDefinitions> = {
  [Name in EventName<D>]: EmitInput<PayloadInput<D, Name>> & { readonly type: Name }
}[EventName<D>]

/** A transaction that data and events share: both are committed, or neither. */
export interface EmittingTransaction<D extends EventDefinitions> extends Queryable {
  emit: Emit<D>
  query<Row = Record<string, unknown>>(text: string, values?: readonly Parameter[]): Promise<QueryResult<Row>>
  savepoint<T>(fn: () => Promise<T>): Promise<T>
  /** Called once after COMMIT succeeded. */
  onCommit(hook: () => void): void
}

export interface MigrateRequest extends MigrateOptions {
  /** Roles that may append. */
  readonly grantEmit?: readonly string[]
  /** Roles that processes run as. */
  readonly grantRun?: readonly string[]
  /** Roles that see sessions of others (pg_read_all_stats), to say what holds the log back. Needs a superuser. */
  readonly grantMonitor?: readonly string[]
  /** Roles that may read the events of the tenant they name in `aftercommit.tenant`, by the view `tenant_events`. */
  readonly grantRead?: readonly string[]
  /** Take over plain events of types that are declared as streams now. */
  readonly adoptStreams?: boolean
  /** Told of each captured table that was put in place, or left. */
  readonly onCapture?: (step: CaptureStep) => void
}

export interface MigrateReport extends MigrateResult {
  /** Captured tables that were put in place or left. */
  readonly captured: CaptureStep[]
}

export interface SearchDocuments extends Search {
  /**
   * Makes indexes anew from history, by the rules that were loaded. What is in use stays so until the new one is whole;
   * events go on being indexed meanwhile. Rejects, and changes nothing, when the engine cannot be written to.
   */
  reindex(options?: ReindexOptions): Promise<ReindexReport>
}

export interface StartOptions {
  /** Patterns of subscription ids, such as `projection:*`. */
  readonly only?: readonly string[] | undefined
}

export interface DrainResult {
  /** False when the time ran out first. */
  readonly drained: boolean
  readonly head: bigint
}

export interface Aftercommit<D extends EventDefinitions = EventDefinitions> {
  /** Brings the schema up to date; safe to call from every process at once. */
  migrate(request?: MigrateRequest): Promise<MigrateReport>
  /** The SQL that `migrate` would run, for deploys that run SQL themselves. Empty when nothing is left to do. */
  migrationScript(request?: Pick<MigrateRequest, 'grantEmit' | 'grantRun'>): Promise<string>
  transaction<T>(fn: (tx: EmittingTransaction<D>) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Appends within your transaction of pg, postgres.js, Drizzle, Kysely or Prisma. A pool or root client is refused: the
   * event would stay when your transaction rolls back.
   */
  emit<Name extends EventName<D>>(
    tx: CallerTransaction,
    type: Name,
    event: EmitInput<PayloadInput<D, Name>>,
  ): Promise<Emitted>
  emit(tx: CallerTransaction, events: readonly EmitOf<D>[]): Promise<Emitted[]>
  /** Appends and commits at once, through the instance's own pool or through a pool or client of yours. */
  readonly emitNow: EmitNow<D>
  /** Appends `auth.<type>`, in a transaction of yours or by itself; every instance hears it. */
  emitAuth(auth: AuthInput, options?: { tx?: CallerTransaction | undefined }): Promise<Emitted>
  /** Tables whose row changes become events, whoever makes them. */
  readonly capture: Capture
  readonly log: Log<D>
  /** Where everything stands: server, schema, log, processes. */
  status(): Promise<Status>
  /** What could go wrong with this database, and how to mend it. */
  doctor(): Promise<Finding[]>
  /** Handles events from its checkpoint on, in order, at least once, wherever in the cluster it runs. */
  subscribe<const P extends readonly string[] = readonly ['*']>(
    subscription: SubscriptionOptions<EventOf<D, P>, EmittingTransaction<D>> & { readonly on?: P },
  ): SubscriptionHandle
  readonly subscriptions: Subscriptions
  /** Which events a subscription has processed, for handlers that must not act twice. */
  readonly processed: Processed
  /** Publishes events to a bus, in order and at least once, from one process of the cluster at a time. */
  relay(relay: RelayOptions): RelayHandle
  /** Keeps one state per id, folded from events in the transaction that moves the checkpoint. */
  project<State, const P extends readonly string[] = readonly ['*']>(
    projection: ProjectionOptions<EventOf<D, P>, State> & { readonly on?: P },
  ): ProjectionHandle<State>
  readonly projections: Projections
  /** Code that reacts inside the process: in every one, or once per cluster. */
  readonly hooks: Hooks<D>
  /** Events of the log, for everybody in this process who listens. */
  readonly broadcaster: Broadcaster
  /** Events of the log for browsers and others outside, with a token to resume after. */
  readonly live: Live<D>
  /** Inside this process, and kept in step by the log in every process. */
  readonly cache: Cache
  /** Rules that react to events, from a TOML file or from TypeScript. */
  readonly observers: Observers
  /** Browsers that push actions send to. */
  readonly push: Push
  /** What comes back of text messages. */
  readonly sms: Sms
  /** Long-lived processes: pure deciders with durable effects and timers. */
  readonly workflows: Workflows
  /** What comes again and again, by cron expressions. */
  readonly schedules: Schedules
  /** Documents that search actions keep in this database: find them, look them up, make an index anew. */
  readonly search: SearchDocuments
  /**
   * Everything that followed one event: reactions with their states, why the rest waits and the command that moves it, and
   * the events it caused. `receipt.settled()` waits until nothing is open.
   */
  readonly receipt: Receipts
  /** What operators did by hand, with who and why. */
  readonly audit: Audit
  readonly deadLetters: DeadLetters
  /** Durable work that is not done: look at it, hurry it, cancel it, pause it. */
  readonly deliveries: Deliveries
  /** Follows the log and runs subscriptions until `stop()`; with `only`, those whose id matches a pattern. */
  start(options?: StartOptions): Promise<void>
  /** Without `start()`: runs subscriptions until they have handled what is there now, then gives their leases back. */
  drain(options?: { timeout?: Duration }): Promise<DrainResult>
  /** Ends everything and closes every connection. May be called twice. */
  stop(): Promise<void>
  /** Prometheus text. */
  metrics(): Promise<string>
  health(): HealthReport
  /** Walks the whole log and looks for events that a subscription can have skipped. */
  verify(options?: { onProgress?: (done: bigint, of: bigint) => void }): Promise<VerifyReport>
  /** Splits partitions, drops what retention lets go anywhere, indexes closed partitions. Runs by itself after `start()`. */
  upkeep(): Promise<UpkeepReport>
}
