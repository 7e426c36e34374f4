/** Handlers of deliveries that this process has registered, by kind and name. */
import { AftercommitError } from '../errors.ts'
import type { Work } from './delivery.ts'

export class Handlers {
  readonly #handlers = new Map<string, Work>()

  get size(): number {
    return this.#handlers.size
  }

  /** JSON, as claims ask for them. */
  get names(): string {
    return JSON.stringify([...this.#handlers.values()].map(({ kind, name }) => ({ kind, name })))
  }

  /** A second handler of the same name would silently take over the work of the first. */
  add(work: Work): void {
    const key = keyOf(work)
    if (this.#handlers.has(key)) throw registeredTwice(work)
    this.#handlers.set(key, work)
  }

  remove(kind: string, name: string): void {
    this.#handlers.delete(keyOf({ kind, name }))
  }

  get(named: { kind: string; name: string }): Work | undefined {
    return this.#handlers.get(keyOf(named))
  }
}

function registeredTwice({ kind, name }: Work): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `The ${kind} "${name}" is registered twice in this process; the second was refused. Rename one of the two.`,
  )
}

function keyOf({ kind, name }: { kind: string; name: string }): string {
  return JSON.stringify([kind, name])
}
