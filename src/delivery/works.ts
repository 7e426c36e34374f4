/** What this process can do, by kind and name. */
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

  add(work: Work): void {
    this.#works.set(keyOf(work), work)
  }

  remove(kind: string, name: string): void {
    this.#works.delete(keyOf({ kind, name }))
  }

  get(named: { kind: string; name: string }): Work | undefined {
    return this.#works.get(keyOf(named))
  }
}

function keyOf({ kind, name }: { kind: string; name: string }): string {
  return JSON.stringify([kind, name])
}
