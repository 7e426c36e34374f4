import { setMaxListeners } from 'node:events'

/** What a call listens to: whether it was aborted, and why. */
export interface Abortable {
  readonly aborted: boolean
  readonly reason: unknown
  readonly signal: AbortSignal
  /** Calls back once, at once if it was aborted before. The returned function stops listening. */
  onAbort(callback: () => void): () => void
}

/**
 * An abort signal that is made when a call first reads it. Most calls never do, and a signal costs more than the rest of a
 * call. Code of this library listens with `onAbort`, which makes none.
 */
export class LazySignal implements Abortable {
  #controller: AbortController | undefined
  #callbacks: Set<() => void> | undefined
  #reason: unknown
  #aborted = false

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // One event may ask for any number of calls, and each listens.
      setMaxListeners(0, this.#controller.signal)
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  onAbort(callback: () => void): () => void {
    if (this.#aborted) {
      callback()
      return () => {}
    }
    this.#callbacks ??= new Set()
    const callbacks = this.#callbacks.add(callback)
    return () => void callbacks.delete(callback)
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    const callbacks = [...(this.#callbacks ?? [])]
    this.#callbacks = undefined
    for (const callback of callbacks) callback()
    this.#controller?.abort(reason)
  }
}
