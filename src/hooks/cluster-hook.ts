/**
 * A hook of scope `cluster` is a durable subscription `hook:<name>`: one process of all runs it, from its checkpoint on,
 * with retries and dead letters. What is here is its filter, its start and its end.
 */
import type { AnyEvent } from '../log/index.ts'
import { formatDuration, retryUntil } from '../runtime/index.ts'
import {
  type HandlerContext,
  type SubscriptionHandle,
  type SubscriptionsPart,
  toDefinition,
} from '../subscriptions/index.ts'
import { errorKind } from './error-kind.ts'
import { readHistory } from './history.ts'
import type { Hook, HookContext, HookStatus } from './hook.ts'
import type { HookParts } from './instance-hook.ts'
import { callOnStop, loadOnce } from './loading.ts'
import { Readiness } from './readiness.ts'

export class ClusterHook {
  readonly hook: Hook
  readonly #parts: HookParts
  readonly #readiness: Readiness
  readonly #subscriptions: Pick<SubscriptionsPart, 'register'>
  #subscription: SubscriptionHandle | undefined
  #state: 'idle' | 'loading' | 'ready' | 'stopped' = 'idle'
  #stopping = new AbortController()
  #handled = 0
  #failed = 0

  constructor(hook: Hook, parts: HookParts, subscriptions: Pick<SubscriptionsPart, 'register'>) {
    this.hook = hook
    this.#parts = parts
    this.#readiness = new Readiness(hook, parts)
    this.#subscriptions = subscriptions
    // Until it has started for the first time, this process does not take part: others may.
    if (hook.onStart === undefined) this.#register()
  }

  /** Resolves when `onStart` has succeeded or failed for the first time; it is tried until it succeeds. */
  async start(): Promise<void> {
    if (this.#state === 'loading' || this.#state === 'ready') return
    this.#stopping = new AbortController()
    this.#state = 'loading'
    this.#readiness.tellNotReady('has not started yet')
    const { signal } = this.#stopping
    await new Promise<void>((settle) => {
      const onRetry = (error: unknown, _: number, delayMs: number) => {
        this.#startFailed(error, delayMs)
        settle()
      }
      void retryUntil(() => this.#startOnce(signal), { clock: this.#parts.clock, signal, onRetry })
        .then(
          () => signal.aborted || this.#begin(),
          // Only a stop ends the repeating.
          () => {},
        )
        .finally(settle)
    })
  }

  async stop(): Promise<void> {
    if (this.#state === 'idle' || this.#state === 'stopped') return
    this.#state = 'stopped'
    this.#stopping.abort()
    this.#readiness.forget()
    await callOnStop(this.hook, this.#parts.clock, this.#parts.logger)
  }

  /** Ends the subscription in this process; its checkpoint stays, and other processes may go on. */
  async remove(): Promise<void> {
    await this.#subscription?.stop()
    await this.stop()
  }

  status(): HookStatus {
    const { name, scope } = this.hook
    return {
      name,
      scope,
      state: this.#state,
      ready: this.#readiness.ready,
      reason: this.#readiness.reason,
      handled: this.#handled,
      failed: this.#failed,
      position: null,
      lag: null,
    }
  }

  #begin(): void {
    this.#register()
    this.#state = 'ready'
    this.#readiness.tellReady()
  }

  #register(): void {
    const { hook } = this
    const { name, types = [], from = 'head', transactional = false, concurrency, timeout } = hook
    this.#subscription ??= this.#subscriptions.register(
      toDefinition({
        id: `hook:${name}`,
        on: types.length === 0 ? ['*'] : types,
        key: hook.keyOf,
        handle: (event, context) => this.#handle(event, context),
        transactional,
        // A transaction moves one checkpoint at a time.
        concurrency: transactional ? 1 : concurrency,
        retry: hook.retryOptions,
        from,
        timeout,
      }),
    )
  }

  async #startOnce(signal: AbortSignal): Promise<void> {
    const { tailer, clock } = this.#parts
    const history = (options = {}) => readHistory(this.#parts, tailer.frontier, options)
    await loadOnce(this.hook, { reason: 'start', clock, signal, history })
  }

  #startFailed(error: unknown, delayMs: number): void {
    this.#failed++
    this.#parts.logger.error({ hook: this.hook.name, err: error }, 'a hook could not start and tries again')
    this.#readiness.tellNotReady(`could not start (${errorKind(error)}) and tries again in ${formatDuration(delayMs)}`)
  }

  async #handle(event: AnyEvent, context: HandlerContext): Promise<void> {
    if (!this.hook.matches(event)) return
    try {
      await this.hook.handle(event, this.#contextOf(context))
      this.#handled++
    } catch (error) {
      this.#failed++
      throw error
    }
  }

  #contextOf(context: HandlerContext): HookContext {
    const { attempt, idempotencyKey, tx } = context
    return {
      hook: this.hook.name,
      attempt,
      coalesced: 1,
      idempotencyKey,
      tx,
      get signal() {
        return context.signal
      },
    }
  }
}
