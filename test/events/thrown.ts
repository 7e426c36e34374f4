/** What a call throws, so that a test can look at its fields. A call that does not throw fails the test. */
export function thrownBy<E extends Error>(kind: new (...args: never[]) => E, call: () => unknown): E {
  try {
    call()
  } catch (error) {
    if (error instanceof kind) return error
    throw error
  }
  throw new Error(`Expected ${kind.name}, but nothing was thrown.`)
}
