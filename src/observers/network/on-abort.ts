import type { Abortable } from '../../runtime/index.ts'

/** A signal of a caller, or the call itself: to listen to that costs no signal. */
export type Abort = AbortSignal | Abortable

/**
 * Listens to a signal, and returns the way to stop listening. One listener per signal however many calls share it: the
 * signal of a process that runs thousands of actions would otherwise warn of a leak, and adding and removing listeners
 * costs more than all the rest of a call.
 */
export function onAbort(signal: Abort, callback: () => void): () => void {
  if ('onAbort' in signal) return signal.onAbort(callback)
  if (signal.aborted) {
    callback()
    return () => {}
  }
  const callbacks = CALLBACKS.get(signal) ?? listen(signal)
  callbacks.add(callback)
  return () => void callbacks.delete(callback)
}

/** The promise, or a rejection with the signal's reason. What the promise does after that is nobody's business. */
export function untilAborted<T>(promise: Promise<T>, signal: Abort): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => reject(signal.reason))
    promise.then(
      (value) => {
        stopListening()
        resolve(value)
      },
      (error) => {
        stopListening()
        reject(error)
      },
    )
  })
}

const CALLBACKS = new WeakMap<AbortSignal, Set<() => void>>()

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>()
  CALLBACKS.set(signal, callbacks)
  signal.addEventListener(
    'abort',
    () => {
      for (const callback of callbacks) callback()
      callbacks.clear()
    },
    { once: true },
  )
  return callbacks
}
