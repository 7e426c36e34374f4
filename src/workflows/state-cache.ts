/**
 * States that this process has seen last. One is used only where its version and the position of its last event are those
 * of the instance; where others have gone on, only what they added is read.
 */
import { aggregateKey } from '../events/index.ts'
import type { InstanceRef, KnownInstance } from './store.ts'

export interface KnownState<State = unknown> extends KnownInstance {
  readonly state: State
}

export class StateCache {
  readonly #most: number
  readonly #states = new Map<string, KnownState>()

  constructor(most: number) {
    this.#most = most
  }

  get({ type, id }: InstanceRef): KnownState | undefined {
    return this.#states.get(aggregateKey(type, id))
  }

  /** What was used last goes last. */
  put({ type, id }: InstanceRef, known: KnownState): void {
    const key = aggregateKey(type, id)
    this.#states.delete(key)
    this.#states.set(key, known)
    if (this.#states.size <= this.#most) return
    for (const oldest of this.#states.keys()) {
      this.#states.delete(oldest)
      return
    }
  }
}
