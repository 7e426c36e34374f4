/** A hook as users write it, and as the rest of the code wants it: checked, with every default filled in. */
import { AftercommitError } from '../errors.ts'
import { type AftercommitEvent, compilePatterns, type EventKind, ownCopy, patternsToSql } from '../events/index.ts'
import type { AnyEvent, StartPoint } from '../log/index.ts'
import { checkAnswer, type Duration, parseRetry, type RetryOptions, type RetryPolicy, toMs } from '../runtime/index.ts'
import type { Settling } from './lanes.ts'

/** `instance`: every process hears every event. `cluster`: one process of all handles it, durably. */
export type HookScope = 'instance' | 'cluster'

export interface HookContext {
  readonly hook: string
  /** Fires when the time of the call is up, when its place was lost and when the process stops. */
  readonly signal: AbortSignal
  /** From 1. */
  readonly attempt: number
  /** How many events this call stands for; more than 1 with `debounce` and `latestWins`. */
  readonly coalesced: number
  /** The same for every try of this event by this hook: give it to whoever must not act twice. */
  readonly idempotencyKey: string
  /** With `transactional: true`: moves the checkpoint too, so what is written through it happens once. */
  readonly tx: unknown
}

/** `lag`: too far behind to go on event by event; `epoch`: history has forked; `failure`: an event could not be handled. */
export type StartReason = 'start' | 'lag' | 'epoch' | 'failure'

export interface HookStartContext {
  readonly hook: string
  readonly signal: AbortSignal
  readonly reason: StartReason
  /** What the log holds up to where the hook stands, oldest first. What comes later is given to `handle`. */
  history(options?: { types?: readonly string[]; since?: StartPoint }): AsyncIterable<AnyEvent>
}

export interface HookOptions<Event extends AftercommitEvent = AnyEvent> {
  /** Stable over releases: a hook of scope `cluster` keeps its checkpoint under `hook:<name>`. */
  readonly name: string
  /** Patterns of types; every event when absent or empty. */
  readonly types?: readonly string[] | undefined
  readonly kinds?: readonly EventKind[] | undefined
  /** Types of aggregates. */
  readonly entities?: readonly string[] | undefined
  readonly scope: HookScope
  readonly handle: (event: Event, context: HookContext) => unknown
  /** For one call; 30 s unless told. */
  readonly timeout?: Duration | undefined
  /** What goes one after the other; the aggregate unless told. Different keys run side by side. */
  readonly key?: ((event: Event) => string) | undefined
  /** How many keys are handled at once; 10 unless told. */
  readonly concurrency?: number | undefined
  /** Waits until a key has been quiet for so long, at most `maxWait` (10 times that), then calls once with its newest event. */
  readonly debounce?: Duration | { readonly wait: Duration; readonly maxWait?: Duration | undefined } | undefined
  /** Of the events of a key that wait, only the one with the highest position is handled. */
  readonly latestWins?: boolean | undefined
  /** 4 attempts, 1 s doubling to 60 s, unless told. */
  readonly retry?: RetryOptions | undefined
  /** An event is tried until it succeeds, and the instance is not ready meanwhile. */
  readonly untilDone?: boolean | undefined
  /** False: not registered, not counted. Asked once, when the hook is added. */
  readonly enabled?: boolean | (() => boolean) | undefined
  /** Loads what the hook keeps. The feed is attached before and events wait until it is done; tried until it succeeds. */
  readonly onStart?: ((context: HookStartContext) => unknown) | undefined
  /** The place in the log was lost: loads anew; `onStart` unless told. */
  readonly onResync?: ((context: HookStartContext) => unknown) | undefined
  /** For one call of `onStart` or `onResync`; 5 min unless told. */
  readonly loadTimeout?: Duration | undefined
  readonly onStop?: (() => unknown) | undefined
  /** Told when the hook becomes ready and when it no longer is. */
  readonly onReady?: ((ready: boolean) => void) | undefined
  /** Scope `cluster` only: where it begins when first registered; `'head'` unless told. */
  readonly from?: StartPoint | undefined
  /** Scope `cluster` only: gives the handler a transaction that also moves the checkpoint. */
  readonly transactional?: boolean | undefined
}

export interface Hook extends Omit<HookOptions, 'timeout' | 'loadTimeout' | 'retry' | 'debounce' | 'key'> {
  readonly matches: (event: AnyEvent) => boolean
  /** The choice by type for the database; undefined for every type. */
  readonly typeExpression: string | undefined
  readonly keyOf: (event: AnyEvent) => string
  readonly settling: Settling
  readonly concurrency: number
  readonly retry: RetryPolicy
  readonly retryOptions: RetryOptions
  readonly timeout: Duration
  readonly timeoutMs: number
  readonly loadTimeoutMs: number
}

export interface HookStatus {
  readonly name: string
  readonly scope: HookScope
  readonly state: 'idle' | 'loading' | 'catching up' | 'ready' | 'failing' | 'stopped'
  readonly ready: boolean
  /** Why it is not ready. */
  readonly reason: string | null
  readonly handled: number
  /** Calls that threw or took too long, each try counted. */
  readonly failed: number
  /** Scope `instance`: how far it has read; that of scope `cluster` is in `ac.subscriptions.get('hook:<name>').status()`. */
  readonly position: bigint | null
  /** Positions between there and the frontier. */
  readonly lag: bigint | null
}

const RETRY: RetryOptions = { maxAttempts: 4, initialDelay: '1s', maxDelay: '60s' }
const KINDS: readonly string[] = ['created', 'updated', 'deleted', 'custom'] satisfies EventKind[]

export function toHook(options: HookOptions): Hook {
  const { name, scope, types = [], kinds = [], entities = [], concurrency = 10, timeout = '30s' } = options
  if (typeof name !== 'string' || !/^[\w:.-]{1,150}$/.test(name)) {
    refuse('A hook', 'needs a `name` of 1 to 150 letters, digits and _ : . -')
  }
  const what = `Hook "${name}"`
  if (scope !== 'instance' && scope !== 'cluster') refuse(what, "needs a `scope`, 'instance' or 'cluster'")
  if (typeof options.handle !== 'function') refuse(what, 'needs a function as `handle`')
  const badKind = kinds.find((kind) => !KINDS.includes(kind))
  if (badKind !== undefined) refuse(what, `has a kind "${badKind}"; kinds are ${KINDS.join(', ')}`)
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > 1_000) {
    refuse(what, 'needs a whole `concurrency` from 1 to 1000')
  }
  const misplaced = MISPLACED[scope].find((option) => options[option] !== undefined)
  if (misplaced) refuse(what, `of scope '${scope}' cannot have \`${misplaced}\``)
  const retryOptions = options.retry ?? RETRY
  return {
    ...options,
    matches: matcher(types, kinds, entities),
    typeExpression: types.length === 0 ? undefined : patternsToSql(types),
    keyOf: toKeyOf(name, options.key),
    settling: toSettling(what, options),
    concurrency,
    retry: parseRetry(retryOptions, `${name}.retry`),
    retryOptions,
    timeout,
    timeoutMs: toMs(timeout, `${name}.timeout`),
    loadTimeoutMs: toMs(options.loadTimeout ?? '5m', `${name}.loadTimeout`),
  }
}

/** The user's function gets a copy, because the event itself is shared. */
function toKeyOf(name: string, key: HookOptions['key']): Hook['keyOf'] {
  if (key === undefined) return (event) => event.key
  const rules = { what: `\`key\` of hook "${name}"`, so: 'it was not used' }
  return (event) => checkAnswer(key(ownCopy(event)), rules)
}

export function isEnabled({ name, enabled = true }: HookOptions): boolean {
  if (typeof enabled !== 'function') return enabled
  return checkAnswer(enabled(), { what: `\`enabled\` of hook "${name}"`, so: 'it was not added' }) === true
}

/** What only the other scope knows: a checkpoint cannot wait for a quiet moment, and a cache has no transaction. */
const MISPLACED: Record<HookScope, readonly (keyof HookOptions)[]> = {
  instance: ['from', 'transactional'],
  cluster: ['debounce', 'latestWins', 'untilDone', 'onResync', 'onReady'],
}

function matcher(types: readonly string[], kinds: readonly EventKind[], entities: readonly string[]) {
  const matchesType = types.length === 0 ? () => true : compilePatterns(types)
  return (event: AnyEvent) =>
    matchesType(event.type) &&
    (kinds.length === 0 || kinds.includes(event.kind)) &&
    (entities.length === 0 || (event.aggregateType !== null && entities.includes(event.aggregateType)))
}

function toSettling(what: string, { name, debounce, latestWins = false }: HookOptions): Settling {
  if (debounce === undefined) return { latestWins, waitMs: 0, maxWaitMs: 0 }
  const { wait, maxWait } = typeof debounce === 'string' ? { wait: debounce, maxWait: undefined } : debounce
  const waitMs = toMs(wait, `${name}.debounce`)
  const maxWaitMs = maxWait === undefined ? waitMs * 10 : toMs(maxWait, `${name}.debounce.maxWait`)
  if (maxWaitMs < waitMs) refuse(what, 'has a `debounce.maxWait` shorter than its `wait`')
  return { latestWins: true, waitMs, maxWaitMs }
}

function refuse(what: string, fault: string): never {
  throw new AftercommitError('BAD_OPTION', `${what} ${fault}, so it was not added.`)
}
