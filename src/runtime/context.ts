import { AsyncLocalStorage } from 'node:async_hooks'

/** What an event is emitted because of. Whatever is emitted further down the same asynchronous call inherits it. */
export interface Cause {
  /** Shared by everything that follows from one first event or request. */
  readonly correlationId: string
  /** The event being handled; absent at the beginning of a chain. */
  readonly causationId?: string | undefined
  /** How many events led here: 0 at the beginning of a chain. It is what ends a chain that feeds itself. */
  readonly depth: number
  readonly userId?: string | undefined
  readonly tenant?: string | undefined
  readonly traceparent?: string | undefined
}

const causes = new AsyncLocalStorage<Cause | (() => Cause)>()

/**
 * Runs `fn` so that everything it awaits sees `cause`. An inner cause hides the outer one entirely. A function is asked
 * when somebody emits: most handlers do not, and a cause takes longer to find out than they run.
 */
export function runWithCause<T>(cause: Cause | (() => Cause), fn: () => T): T {
  return causes.run(typeof cause === 'function' ? cause : Object.freeze({ ...cause }), fn)
}

export function currentCause(): Cause | undefined {
  const cause = causes.getStore()
  return typeof cause === 'function' ? cause() : cause
}
