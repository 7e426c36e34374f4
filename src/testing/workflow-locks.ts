interface Lock {
  readonly free: Promise<void>
  readonly release: () => void
}

/** Who an instance belongs to: first come, first served, until the owner lets go of everything at once. */
export class MemoryLocks {
  /** What whoever comes next waits for. */
  readonly #last = new Map<string, Lock>()
  readonly #held = new Map<object, Map<string, Lock>>()

  async take(key: string, owner: object): Promise<void> {
    const held = this.#held.get(owner) ?? new Map<string, Lock>()
    if (held.has(key)) return
    const before = this.#last.get(key)
    const lock = newLock()
    this.#last.set(key, lock)
    this.#held.set(owner, held.set(key, lock))
    await before?.free
  }

  release(owner: object): void {
    for (const [key, lock] of this.#held.get(owner) ?? []) {
      if (this.#last.get(key) === lock) this.#last.delete(key)
      lock.release()
    }
    this.#held.delete(owner)
  }
}

function newLock(): Lock {
  let release = () => {}
  const free = new Promise<void>((resolve) => {
    release = resolve
  })
  return { free, release }
}
