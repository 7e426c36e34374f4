import type { Health, Logger } from '../runtime/index.ts'
import type { Hook } from './hook.ts'

/** Whether a hook is ready, told to health with the reason, and to the hook itself when it changes. */
export class Readiness {
  readonly #hook: Hook
  readonly #health: Health
  readonly #logger: Logger
  #ready: boolean | undefined
  #reason: string | null = null

  constructor(hook: Hook, { health, logger }: { readonly health: Health; readonly logger: Logger }) {
    this.#hook = hook
    this.#health = health
    this.#logger = logger
  }

  get ready(): boolean {
    return this.#ready === true
  }

  get reason(): string | null {
    return this.#reason
  }

  tellReady(): void {
    this.#reason = null
    this.#health.report({ name: this.#part, live: true, ready: true })
    this.#change(true)
  }

  /** `why` goes on after the name of the hook. It is shown to probes: no data. */
  tellNotReady(why: string): void {
    this.#reason = `hook ${this.#hook.name} ${why}`
    this.#health.report({ name: this.#part, live: true, ready: false, reason: this.#reason })
    this.#change(false)
  }

  /** A hook that was stopped on purpose is no reason for anything. */
  forget(): void {
    this.tellNotReady('was stopped')
    this.#health.forget(this.#part)
  }

  get #part(): string {
    return `hook ${this.#hook.name} readiness`
  }

  #change(ready: boolean): void {
    if (this.#ready === ready) return
    this.#ready = ready
    try {
      this.#hook.onReady?.(ready)
    } catch (error) {
      this.#logger.error({ hook: this.#hook.name, err: error }, '`onReady` of a hook failed')
    }
  }
}
