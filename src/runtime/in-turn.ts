/** Runs work one piece after the other, in the order in which callers asked. A failure reaches its caller alone. */
export type InTurn = <T>(work: () => T | Promise<T>) => Promise<T>

export function createInTurn(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }
}

/** The same for each key; work of different keys runs side by side. */
export type InTurnByKey = <T>(key: string, work: () => T | Promise<T>) => Promise<T>

export function createInTurnByKey(): InTurnByKey {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const done = (last.get(key) ?? Promise.resolve()).then(work)
    const settled = done
      .catch(() => {})
      .then(() => {
        if (last.get(key) === settled) last.delete(key)
      })
    last.set(key, settled)
    return done
  }
}
