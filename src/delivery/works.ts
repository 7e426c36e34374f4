/** What this process can do, by kind and name. */
import { AftercommitError } from '../errors.ts'
import type { Work } from './delivery.ts'

export class Works {
  readonly #works = new Map<string, Work>()

  get size(): number {
    return this.#works.size
  }

  /** As the database is asked for them. */
  get names(): string {
    return JSON.stringify([...this.#works.values()].map(({ kind, name }) => ({ kind, name })))
  }

  /** A second handler of the same name would silently take over the work of the first. */
  add(work: Work): void {
    const key = keyOf(work)
    if (this.#works.has(key)) throw registeredTwice(work)
    this.#works.set(key, work)
  }

  remove(kind: string, name: string): void {
    this.#works.delete(keyOf({ kind, name }))
  }

  get(named: { kind: string; name: string }): Work | undefined {
    return this.#works.get(keyOf(named))
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
