/** A signal that is made when somebody looks at it: most calls never do, and it costs more than the rest of a call. */
export class LazySignal {
  #controller: AbortController | undefined
  #reason: unknown

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
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
