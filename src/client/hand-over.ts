/** Gives values to a `for await`, one at a time: whoever gives waits until the loop asks for the next one. */
export interface HandOver<T> {
  /** Resolves when the value was taken and dealt with, or when it is over. */
  give(value: T): Promise<void>
  iterator(): AsyncIterator<T, undefined>
  end(error?: Error): void
}

export function createHandOver<T>(onLeave: () => void): HandOver<T> {
  let asking: { resolve(result: IteratorResult<T, undefined>): void; reject(error: Error): void } | undefined
  let onAsked = () => {}
  let ended: { error: Error | undefined } | undefined

  const asked = () =>
    new Promise<void>((resolve) => {
      onAsked = resolve
    })

  function finish(): Promise<IteratorResult<T, undefined>> {
    return ended?.error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(ended.error)
  }

  return {
    async give(value) {
      if (asking === undefined && ended === undefined) await asked()
      asking?.resolve({ done: false, value })
      asking = undefined
      if (ended === undefined) await asked()
    },
    iterator: () => ({
      next() {
        if (ended !== undefined) return finish()
        return new Promise((resolve, reject) => {
          asking = { resolve, reject }
          onAsked()
        })
      },
      async return() {
        onLeave()
        return { done: true, value: undefined }
      },
    }),
    end(error) {
      if (ended !== undefined) return
      ended = { error }
      if (error === undefined) asking?.resolve({ done: true, value: undefined })
      else asking?.reject(error)
      asking = undefined
      onAsked()
    },
  }
}
