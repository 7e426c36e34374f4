/** Calling what a hook does at its start, when its place was lost and at its end. */
import { type Clock, type Logger, withTimeout } from '../runtime/index.ts'
import type { Hook, HookStartContext, StartReason } from './hook.ts'

export interface Loading {
  readonly reason: StartReason
  readonly clock: Clock
  /** Ends the load when the process stops. */
  readonly signal: AbortSignal
  readonly history: HookStartContext['history']
}

/** One try. Its own signal fires when its time is up as well. */
export async function loadOnce(hook: Hook, { reason, clock, signal, history }: Loading): Promise<void> {
  const load = reason === 'start' ? hook.onStart : (hook.onResync ?? hook.onStart)
  if (load === undefined) return
  const ending = new AbortController()
  const stop = () => ending.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    const call = Promise.resolve().then(() => load({ hook: hook.name, signal: ending.signal, reason, history }))
    await withTimeout(call, hook.loadTimeoutMs, clock, `Hook "${hook.name}" did not load`)
  } catch (error) {
    ending.abort(error)
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Never rejects: whatever it says, the process goes on stopping. */
export async function callOnStop(hook: Hook, clock: Clock, logger: Logger): Promise<void> {
  const { onStop, name, timeoutMs } = hook
  if (onStop === undefined) return
  try {
    await withTimeout(Promise.resolve().then(onStop), timeoutMs, clock, `Hook "${name}" did not stop`)
  } catch (error) {
    logger.error({ hook: name, err: error }, '`onStop` of a hook failed')
  }
}
