import type { AnyEvent } from '../log/index.ts'
import type { HookContext } from './hook.ts'

/** What a handler is told. The signal is made when somebody looks at it: most handlers never do. */
export class HookCall implements HookContext {
  readonly hook: string
  readonly attempt: number
  readonly coalesced: number
  readonly tx = undefined
  readonly #eventId: string
  #controller: AbortController | undefined
  #reason: unknown

  constructor(hook: string, event: AnyEvent, attempt: number, coalesced: number) {
    this.hook = hook
    this.attempt = attempt
    this.coalesced = coalesced
    this.#eventId = event.id
  }

  get idempotencyKey(): string {
    return `hook:${this.hook}:${this.#eventId}`
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#reason ??= reason
    this.#controller?.abort(reason)
  }
}
