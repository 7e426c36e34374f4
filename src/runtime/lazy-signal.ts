import { setMaxListeners } from 'node:events'

/** An abort signal that is made when a call first reads it. Most calls never do, and a signal costs more than the rest of a call. */
export class LazySignal {
  #controller: AbortController | undefined
  #reason: unknown

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // One event may ask for any number of calls, and each listens.
      setMaxListeners(0, this.#controller.signal)
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    this.#reason ??= reason
    this.#controller?.abort(reason)
  }
}
