import type { AnyEvent } from '../log/index.ts'
import { LazySignal } from '../runtime/index.ts'
import type { HookContext } from './hook.ts'

/** What a handler is told. The signal is made when somebody looks at it: most handlers never do. */
export class HookCall extends LazySignal implements HookContext {
  readonly hook: string
  readonly attempt: number
  readonly coalesced: number
  readonly tx = undefined
  readonly #eventId: string

  constructor(hook: string, event: AnyEvent, attempt: number, coalesced: number) {
    super()
    this.hook = hook
    this.attempt = attempt
    this.coalesced = coalesced
    this.#eventId = event.id
  }

  get idempotencyKey(): string {
    return `hook:${this.hook}/${this.#eventId}`
  }
}
