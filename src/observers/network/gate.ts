import { type Abort, onAbort } from './on-abort.ts'

/** At most `size` inside at a time, first come, first served. Whoever waits may give up by a signal. */
export interface Gate {
  /** Resolves with the way out, to be called once; rejects with the signal's reason. */
  enter(signal?: Abort): Promise<() => void>
  readonly inside: number
}

export function createGate(size: number): Gate {
  let inside = 0
  const waiting = new Set<() => void>()

  function leave(): void {
    const [next] = waiting
    if (next === undefined) {
      inside--
      return
    }
    waiting.delete(next)
    next()
  }

  function leaveOnce(): () => void {
    let left = false
    return () => {
      if (!left) leave()
      left = true
    }
  }

  return {
    async enter(signal) {
      if (signal?.aborted) throw signal.reason
      if (inside < size) {
        inside++
        return leaveOnce()
      }
      await new Promise<void>((resolve, reject) => {
        const onTurn = () => {
          stopListening?.()
          resolve()
        }
        waiting.add(onTurn)
        const stopListening =
          signal &&
          onAbort(signal, () => {
            waiting.delete(onTurn)
            reject(signal.reason)
          })
      })
      return leaveOnce()
    },
    get inside() {
      return inside
    },
  }
}
