/** Every setting of an instance, with its default. Durations are strings like `"30s"`, sizes like `"1MB"`. */
import type { CacheOptions } from './cache/index.ts'
import type { DeclaredTables } from './capture/index.ts'
import { AftercommitError } from './errors.ts'
import type { EventDefinitions } from './events/index.ts'
import type { ConnectionTarget } from './postgres/index.ts'
import {
  type Clock,
  type Duration,
  type Logger,
  noTelemetry,
  silentLogger,
  systemClock,
  type Telemetry,
  toMs,
} from './runtime/index.ts'

export interface AftercommitOptions<D extends EventDefinitions = EventDefinitions> {
  /** Which events exist. Without it any well-formed type is accepted, unchecked. */
  readonly events?: D | undefined
  /**
   * Where the log is kept: a URL or its parts. `'embedded'` is a real Postgres started from npm packages. Absent:
   * `DATABASE_URL`, else the embedded one, unless NODE_ENV is production.
   */
  readonly database?: ConnectionTarget | 'embedded' | undefined
  /** An address past a transaction-mode pooler, for LISTEN, session locks and migrations. */
  readonly directDatabase?: ConnectionTarget | undefined
  /** The Postgres schema that holds everything; `aftercommit` unless told. */
  readonly schema?: string | undefined
  /** Connections for work; 10 unless told. */
  readonly poolSize?: number | undefined
  /** Tables whose row changes become events. Put in place by `migrate`; with `events` they join the catalogue. */
  readonly capture?: DeclaredTables | undefined
  readonly log?: LogOptions | undefined
  readonly dlq?: DeadLetterOptions | undefined
  readonly runtime?: RuntimeOptions | undefined
  readonly observers?: ObserversOptions | undefined
  /** Events that `ac.broadcaster` keeps for slow subscribers; 1024 unless told. */
  readonly broadcaster?: { readonly ring?: number | undefined } | undefined
  /** How much `ac.cache` keeps, and for how long. */
  readonly cache?: CacheOptions | undefined
  /** pino-shaped; silent unless told. Payloads and secrets never reach it. */
  readonly logger?: Logger | undefined
  readonly telemetry?: Telemetry | undefined
  readonly clock?: Clock | undefined
}

export interface DeadLetterOptions {
  /** Keep stacks of errors; they may quote data. */
  readonly storeStacks?: boolean | undefined
  /** Try dead letters of subscriptions again by themselves, so long after they died and so often; off unless told. */
  readonly autoRedrive?: { readonly after: Duration; readonly max: number } | undefined
  /** How long letters are kept that were redriven with success or discarded; 30 days unless told. Dead ones stay. */
  readonly retention?: Duration | undefined
}

export interface ObserversOptions {
  /**
   * Which observers this process has. Within a group the newest set of rules is in force; a service with rules of its own has
   * a group of its own. Goes before `group` of the observer file. Default: 'observers'.
   */
  readonly group?: string | undefined
}

/** What is given here goes before `[runtime]` of the observer file. */
export interface RuntimeOptions {
  /** Which runs of observers are kept: `'all'` unless told, or only those with a problem. */
  readonly record?: 'all' | 'problems' | undefined
  /** Events that observers have read and not finished; 1000 unless told. */
  readonly channelCapacity?: number | undefined
  /** How many deliveries this process works on at a time; 50 unless told. */
  readonly maxConcurrency?: number | undefined
  /** A subscriber of `ac.broadcaster` that is too slow goes on with the oldest event that is kept; with `'drop'`, with what is new. */
  readonly overflowPolicy?: 'block' | 'drop' | 'drop_oldest' | undefined
  /**
   * How much of the log the readers of this process may hold together, as `"64MB"`: subscriptions, observers, feeds, and the
   * ring of recent events that they share. Each may always hold one event. Default: a fifth of the heap limit.
   */
  readonly eventMemory?: string | number | undefined
  /** How long `stop()` waits for what is under way; `"30s"` unless told. */
  readonly shutdownTimeout?: Duration | undefined
}

export interface LogOptions {
  /** Stored at `migrate`: how readers are woken. */
  readonly wake?: 'doorbell' | 'poll' | undefined
  /** Stored at `migrate`: events older than this may go, `'unlimited'` keeps all. */
  readonly retention?: Duration | 'unlimited' | undefined
  /** The largest payload, as Postgres writes it: with a space after each colon and comma. Stored at `migrate`. Default: `'1MB'`, at most `'16MB'`. */
  readonly maxPayload?: string | number | undefined
  /** Levels of arrays and objects in a payload. Stored at `migrate`. Default: 64, at most 1,000. */
  readonly maxNesting?: number | undefined
  /** How many causes an event may have behind it. */
  readonly maxDepth?: number | undefined
  /**
   * Prepare the statement that appends on clients of `pg` that you pass, too: an append takes a quarter less of the
   * server's time. Only for clients that lead straight to the server and keep their prepared statements. Behind a pooler, or after
   * DEALLOCATE or DISCARD, the next append fails with 26000 and aborts your transaction. The instance's own connections find
   * that out by themselves. Default: false.
   */
  readonly prepareOnClients?: boolean | undefined
}

export function withDefaults(options: AftercommitOptions) {
  const { log = {} } = options
  return {
    database: options.database,
    directDatabase: options.directDatabase,
    schema: options.schema ?? 'aftercommit',
    poolSize: options.poolSize ?? 10,
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock,
    telemetry: options.telemetry ?? noTelemetry,
    dlq: {
      storeStacks: options.dlq?.storeStacks ?? false,
      autoRedrive: autoRedrive(options.dlq?.autoRedrive),
      retentionSeconds: toMs(options.dlq?.retention ?? '30d', 'dlq.retention') / 1_000,
    },
    observers: { group: groupName(options.observers?.group) },
    runtime: {
      record: options.runtime?.record,
      channelCapacity: given(options.runtime?.channelCapacity, 'runtime.channelCapacity'),
      eventBytes: eventMemory(options.runtime?.eventMemory),
      maxConcurrency: count(options.runtime?.maxConcurrency ?? 50, 'runtime.maxConcurrency'),
      shutdownMs: toMs(options.runtime?.shutdownTimeout ?? '30s', 'runtime.shutdownTimeout'),
    },
    log: {
      wake: log.wake,
      retentionSeconds: retentionSeconds(log.retention),
      maxPayloadBytes: atMost(MOST_PAYLOAD, toBytes(log.maxPayload ?? '1MB', 'log.maxPayload'), 'log.maxPayload'),
      maxNesting: atMost(MOST_NESTING, count(log.maxNesting ?? 64, 'log.maxNesting'), 'log.maxNesting'),
      maxDepth: count(log.maxDepth ?? 32, 'log.maxDepth'),
      prepareOnClients: log.prepareOnClients ?? false,
    },
  }
}

/** What a relay does that is not told otherwise. Deployments set it by environment, without a change of code. */
export function relayDefaults(env: NodeJS.ProcessEnv) {
  return {
    pollIntervalMs: envCount(env, 'AFTERCOMMIT_OUTBOX_POLL_INTERVAL_MS', 100),
    batchSize: envCount(env, 'AFTERCOMMIT_OUTBOX_BATCH_SIZE', 100),
    retentionDays: envCount(env, 'AFTERCOMMIT_OUTBOX_RETENTION_DAYS', 7),
  }
}

export type ResolvedOptions = ReturnType<typeof withDefaults>

/** `1MB` is 2^20 bytes, as Postgres has it. */
export function toBytes(size: string | number, setting: string): number {
  const [, digits, unit = 'B'] = /^(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB)?$/.exec(String(size)) ?? []
  const bytes = Number(digits) * ({ B: 1, kB: 1024, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }[unit] ?? Number.NaN)
  if (Number.isFinite(bytes) && bytes >= 1) return Math.floor(bytes)
  throw new AftercommitError('BAD_OPTION', `${setting} must be a size like "20kB" or "1MB", or a number of bytes.`)
}

function eventMemory(size: string | number | undefined): number | undefined {
  return size === undefined ? undefined : toBytes(size, 'runtime.eventMemory')
}

function retentionSeconds(retention: Duration | 'unlimited' | undefined): number | null | undefined {
  if (retention === undefined) return undefined
  return retention === 'unlimited' ? null : toMs(retention, 'log.retention') / 1_000
}

function envCount(env: NodeJS.ProcessEnv, name: string, fallback: number): number {
  const text = env[name]
  return text === undefined || text === '' ? fallback : count(Number(text), name)
}

function autoRedrive(given: DeadLetterOptions['autoRedrive']) {
  return given && { afterMs: toMs(given.after, 'dlq.autoRedrive.after'), max: count(given.max, 'dlq.autoRedrive.max') }
}

function groupName(group: string | undefined): string | undefined {
  if (group === undefined || /^[\w.-]{1,60}$/.test(group)) return group
  throw new AftercommitError('BAD_OPTION', 'observers.group must be 1 to 60 letters, digits and _ . -')
}

function given(value: number | undefined, setting: string): number | undefined {
  return value === undefined ? undefined : count(value, setting)
}

/** Readers load no larger and no deeper events. */
const MOST_PAYLOAD = 16_777_216
const MOST_NESTING = 1_000

function atMost(most: number, value: number, setting: string): number {
  if (value <= most) return value
  throw new AftercommitError('BAD_OPTION', `${setting} must be at most ${most}.`)
}

function count(value: number, setting: string): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new AftercommitError('BAD_OPTION', `${setting} must be a whole number from 1 up.`)
}
