/** A subscription as users write it, and as the rest of the code wants it: checked, with every default filled in. */
import { AftercommitError } from '../errors.ts'
import { type AftercommitEvent, compilePatterns, ownCopy, patternsToSql } from '../events/index.ts'
import { type AnyEvent, isStartPoint, type StartPoint } from '../log/index.ts'
import { checkAnswer, type Duration, parseRetry, type RetryOptions, type RetryPolicy, toMs } from '../runtime/index.ts'

/** What a handler is told besides the event. */
export interface HandlerContext<Tx = unknown> {
  /** Fires when its time is up and when the lease is lost: whatever the handler waits for should end. */
  readonly signal: AbortSignal
  /** From 1. */
  readonly attempt: number
  readonly subscription: string
  /** The same for every try of this event by this subscription: give it to whoever must not act twice. */
  readonly idempotencyKey: string
  /** The event comes from a dead letter or from behind one. */
  readonly redriven: boolean
  /** With `transactional: true`: moves the checkpoint too, so what is written through it happens once. */
  readonly tx: Tx
}

export interface SubscriptionOptions<Event extends AftercommitEvent = AnyEvent, Tx = unknown> {
  /** Stable over releases: the checkpoint is kept under it. */
  readonly id: string
  /** Patterns of types; every event unless told. */
  readonly on?: readonly string[] | undefined
  readonly tenant?: string | undefined
  /** What order and parking go by; the aggregate unless told. */
  readonly key?: ((event: Event) => string) | undefined
  readonly handle?: ((event: Event, context: HandlerContext<Tx>) => unknown) | undefined
  readonly handleBatch?: ((events: readonly Event[], context: HandlerContext<Tx>) => unknown) | undefined
  /** Gives the handler a transaction that also moves the checkpoint. */
  readonly transactional?: boolean | undefined
  /** How many keys are handled at once in a process; 1 unless told. */
  readonly concurrency?: number | undefined
  readonly checkpoint?: 'coalesced' | 'sync' | { readonly every: number; readonly within: Duration } | undefined
  /** 4 attempts, 1 s doubling to 60 s, unless told. */
  readonly retry?: RetryOptions | undefined
  /** After the last attempt: `'park'` (later events of the key wait), `'skip'`, or `'stop'` (everything waits). */
  readonly onFailure?: 'park' | 'skip' | 'stop' | undefined
  /** Where a new subscription begins; `'start'` unless told. */
  readonly from?: StartPoint | undefined
  /** Asked before the handler; false is a dead letter at once. */
  readonly authorize?: ((event: Event, context: { subscription: string }) => boolean | Promise<boolean>) | undefined
  /** Never passes the checkpoints of these subscriptions. */
  readonly after?: readonly string[] | undefined
  /** `'single'` takes the lease at start from whoever has it. */
  readonly instances?: 'coordinated' | 'single' | undefined
  readonly batchSize?: number | undefined
  /** For one call of the handler; 30 s unless told. */
  readonly timeout?: Duration | undefined
  /** So many keys in a row that run out of attempts mean that the handler is broken, not the events; 5 unless told. */
  readonly failingAfter?: number | undefined
}

export interface Definition {
  readonly id: string
  readonly kind: 'subscription' | 'projection' | 'relay' | 'observers'
  /** What a whole configuration stands for: another one is a new generation. */
  readonly version: string | undefined
  /** Called when this process takes it up, before anything is read. `over` fires when this process no longer runs it. */
  readonly begin: ((over: AbortSignal) => Promise<void>) | undefined
  readonly on: readonly string[]
  readonly tenant: string | undefined
  readonly matches: (event: AnyEvent) => boolean
  /** The same choice for the database. */
  readonly typeExpression: string | undefined
  readonly keyOf: (event: AnyEvent) => string
  readonly handle: ((event: AnyEvent, context: HandlerContext) => unknown) | undefined
  /** Instead of `handle`, for an event that may be what ended the process before; not if `transactional`. */
  readonly handleSuspect: ((event: AnyEvent, context: HandlerContext) => unknown) | undefined
  readonly handleBatch: ((events: readonly AnyEvent[], context: HandlerContext) => unknown) | undefined
  readonly transactional: boolean
  readonly concurrency: number
  readonly checkpoint: 'coalesced' | 'sync' | { readonly every: number; readonly withinMs: number }
  readonly retry: RetryPolicy
  readonly onFailure: 'park' | 'skip' | 'stop'
  readonly from: StartPoint
  readonly authorize: ((event: AnyEvent, context: { subscription: string }) => boolean | Promise<boolean>) | undefined
  readonly after: readonly string[]
  readonly instances: 'coordinated' | 'single'
  readonly batchSize: number
  readonly timeoutMs: number
  readonly failingAfter: number
  /** Events whose calls have begun and that are in no committed checkpoint, at most: so many may be repeated after a kill. */
  readonly mostUnsaved: number
  /** Its handler answers with Leftovers. */
  readonly leaves: boolean
  /** Whether an error of the handler says that the destination of all events takes nothing now. */
  readonly isUnavailable: (error: unknown) => boolean
}

/** Events read and not finished, at most. */
export const WINDOW = 1_000

const RETRY: RetryOptions = { maxAttempts: 4, initialDelay: '1s', maxDelay: '60s' }

/** What only parts of this library ask of a subscription. */
export type DefinitionExtras = Partial<
  Pick<
    Definition,
    'kind' | 'version' | 'begin' | 'keyOf' | 'handleSuspect' | 'mostUnsaved' | 'leaves' | 'isUnavailable'
  >
>

export function toDefinition(options: SubscriptionOptions, extras: DefinitionExtras = {}): Definition {
  const { id, handle, handleBatch, transactional = false, concurrency = 1, on = ['*'], tenant } = options
  if (typeof id !== 'string' || !/^[\w:.-]{1,200}$/.test(id)) {
    refuse('A subscription', 'needs an `id` of 1 to 200 letters, digits and _ : . -')
  }
  const what = `Subscription "${id}"`
  if ((handle === undefined) === (handleBatch === undefined)) refuse(what, 'needs either `handle` or `handleBatch`')
  if (typeof (handle ?? handleBatch) !== 'function') refuse(what, 'needs a function as its handler')
  checkCount(what, 'concurrency', concurrency, 1_000)
  if (concurrency > 1 && transactional) refuse(what, 'cannot be transactional with a concurrency above 1')
  if (concurrency > 1 && handleBatch) refuse(what, 'cannot run batches with a concurrency above 1')
  const { onFailure = 'park', instances = 'coordinated', batchSize = 100, failingAfter = 5 } = options
  if (!['park', 'skip', 'stop'].includes(onFailure))
    refuse(what, "has an `onFailure` other than 'park', 'skip' and 'stop'")
  if (!['coordinated', 'single'].includes(instances))
    refuse(what, "has `instances` other than 'coordinated' and 'single'")
  checkCount(what, 'batchSize', batchSize, WINDOW)
  checkCount(what, 'failingAfter', failingAfter, 1_000)
  if (!isStartPoint(options.from ?? 'start')) {
    refuse(what, "has a `from` other than 'start', 'head', a position (bigint, 0 or more) and a valid Date")
  }
  if (options.after?.includes(id)) refuse(what, 'cannot come after itself')
  const matchesType = compilePatterns(on)
  return {
    id,
    kind: extras.kind ?? 'subscription',
    version: extras.version,
    begin: extras.begin,
    on,
    tenant,
    matches: (event) => matchesType(event.type) && (tenant === undefined || event.tenant === tenant),
    typeExpression: on.includes('*') || on.includes('**') ? undefined : patternsToSql(on),
    keyOf: extras.keyOf ?? toKeyOf(what, options.key),
    handle,
    handleSuspect: extras.handleSuspect ?? handle,
    handleBatch,
    transactional,
    concurrency,
    checkpoint: toCheckpointMode(what, options.checkpoint ?? 'coalesced'),
    retry: parseRetry(options.retry ?? RETRY, `${id}.retry`),
    onFailure,
    from: options.from ?? 'start',
    authorize: options.authorize,
    after: options.after ?? [],
    instances,
    batchSize,
    timeoutMs: toMs(options.timeout ?? '30s', `${id}.timeout`),
    failingAfter,
    mostUnsaved: extras.mostUnsaved ?? Number.POSITIVE_INFINITY,
    leaves: extras.leaves ?? false,
    isUnavailable: extras.isUnavailable ?? (() => false),
  }
}

/** Refuses ids of subscriptions that aftercommit registers itself: they would share a checkpoint with them. */
export function assertOpenId<Options extends { readonly id: string }>(options: Options): Options {
  const { id } = options
  const parts = RESERVED.find(([pattern]) => pattern.test(id))
  if (parts) refuse(`Subscription "${id}"`, `has an id that aftercommit uses for ${parts[1]}`)
  return options
}

const RESERVED: readonly [pattern: RegExp, use: string][] = [
  [/^observers(:|$)/, 'observers'],
  [/^workflow:/, 'workflows'],
  [/^hook:/, 'hooks'],
  [/^redis:/, 'its Redis relay'],
]

/** The user's function gets a copy, because the event itself is shared. */
function toKeyOf(what: string, key: SubscriptionOptions['key']): Definition['keyOf'] {
  if (key === undefined) return (event) => event.key
  const rules = { what: `\`key\` of ${what[0]!.toLowerCase()}${what.slice(1)}`, so: 'the event was not handled' }
  return (event) => checkAnswer(key(ownCopy(event)), rules)
}

/** What decides which events a subscription sees: a change of it is a new generation. */
export function definitionText({ on, tenant, version }: Definition): string {
  return JSON.stringify({ on: [...on].sort(), tenant, version })
}

function toCheckpointMode(
  what: string,
  mode: NonNullable<SubscriptionOptions['checkpoint']>,
): Definition['checkpoint'] {
  if (mode === 'coalesced' || mode === 'sync') return mode
  if (typeof mode !== 'object') refuse(what, "has a `checkpoint` other than 'coalesced', 'sync' and { every, within }")
  checkCount(what, 'checkpoint.every', mode.every, 1_000_000)
  return { every: mode.every, withinMs: toMs(mode.within, 'checkpoint.within') }
}

function checkCount(what: string, setting: string, value: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < 1 || value > most)
    refuse(what, `needs a whole \`${setting}\` from 1 to ${most}`)
}

function refuse(what: string, fault: string): never {
  throw new AftercommitError('BAD_OPTION', `${what} ${fault}, so it was not registered.`)
}
