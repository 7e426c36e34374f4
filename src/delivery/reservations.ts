/**
 * Places kept for rows that are about to be committed. Whoever asks for them writes them as claimed by this worker, and does
 * them at once: what was committed is begun, of what may have been the token is doubted, and of what was not it is cancelled.
 */

import type { Handlers } from './handlers.ts'
import type { InFlight } from './in-flight.ts'
import type { Lease } from './lease.ts'
import { newToken } from './token.ts'

/** Under which worker, and with which token, rows are written as claimed. */
export interface Reservation {
  readonly worker: string
  readonly token: bigint
}

export interface ReservationOptions {
  readonly lease: Lease
  readonly inFlight: InFlight
  readonly handlers: Handlers
}

export class Reservations {
  readonly #options: ReservationOptions
  readonly #kept = new Map<bigint, { readonly places: number; readonly cancels: number }>()

  constructor(options: ReservationOptions) {
    this.#options = options
  }

  /** How many are neither begun nor cancelled. */
  get size(): number {
    return this.#kept.size
  }

  /** Undefined where they could not begin now. `cancels`: how often something was cancelled so far. */
  make(kind: string, names: readonly string[], cancels: number): Reservation | undefined {
    const { lease, handlers } = this.#options
    const isMine = (name: string) => handlers.get({ kind, name }) !== undefined && !lease.isPaused(kind, name, '')
    const { worker } = lease
    if (worker === undefined || names.length > this.#free || !names.every(isMine)) return undefined
    const token = newToken()
    this.#kept.set(token, { places: names.length, cancels })
    return { worker, token }
  }

  /** How often something had been cancelled before it. */
  cancelsBefore(token: bigint): number {
    return this.#kept.get(token)?.cancels ?? -1
  }

  end(token: bigint): void {
    this.#kept.delete(token)
  }

  get #free(): number {
    let { free } = this.#options.inFlight
    for (const { places } of this.#kept.values()) free -= places
    return free
  }
}
