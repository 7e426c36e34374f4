/**
 * What one event leaves behind when its handler has ended: rows for later attempts, dead letters, alerts, run records. It
 * is data. The checkpoint that passes the event takes it along in the same statement (saver.ts), so a write that fails is
 * repeated and a call never is.
 */
import type { ErrorRecord } from '../dead-letters/index.ts'

/** The group of deliveries that a row belongs to. */
export interface LeftLane {
  readonly kind: string
  readonly name: string
  readonly destination: string
  readonly tenant: string
  readonly priority: number
}

export interface LeftRow {
  readonly lane: LeftLane
  readonly owner: string
  /** Rows with the same key run in order; null for none. */
  readonly key: string | null
  readonly eventId: string
  /** JSON text. */
  readonly payload: string
  readonly delayMs: number
  /** Attempts before there was a row. */
  readonly tried?: { readonly attempts: number; readonly sinceFirstMs: number; readonly error: ErrorRecord }
}

export interface LeftLetter {
  readonly lane: LeftLane
  readonly owner: string
  /** The key by which deliveries run in order; null for none. */
  readonly orderKey: string | null
  /** The key that the letter shows. */
  readonly key: string
  readonly eventId: string
  readonly position: bigint
  /** JSON text of a copy of the event. */
  readonly event: string
  readonly error: ErrorRecord
  readonly attempts: number
  readonly sinceFirstMs: number
  /** JSON text, to make the delivery again; null when it cannot be made again. */
  readonly payload: string | null
}

export interface LeftAlert {
  readonly about: string
  readonly text: string
  /** Names of the deliveries that send it. */
  readonly channels: readonly string[]
  /** At most one alert about the same in this time. */
  readonly everySeconds: number
}

/** By the id of the letter, or by the position of the event that waited. */
export type Redriven = { readonly letter: bigint } | { readonly position: bigint }

export class Leftovers {
  rows: LeftRow[] = []
  letters: LeftLetter[] = []
  alerts: LeftAlert[] = []
  /** Run records as objects; refused ones are dropped, and what they tell of happened all the same. */
  runs: object[] = []
  /** Owners of the actions that left a row or a letter. */
  owners: string[] = []
  /** The event was redriven: its dead letter, or the event that waited behind one, is settled by the same write. */
  redriven: Redriven | undefined
  readonly #writeEarly: ((part: Leftovers) => void) | undefined
  #onSettled: (() => void)[] = []
  #queued: Promise<void> | undefined
  #tellQueued = () => {}
  #isClosed = false
  #isSlow = false

  /** `writeEarly` takes what a slow event has left so far. */
  constructor(writeEarly?: (part: Leftovers) => void) {
    this.#writeEarly = writeEarly
  }

  get isEmpty(): boolean {
    return this.weight + this.alerts.length === 0
  }

  /** Rows, letters and run records: the number that bounds one write. */
  get weight(): number {
    return this.rows.length + this.letters.length + this.runs.length
  }

  /** Resolves when the saver has all rows and letters, or when nothing will be saved of them: the next of a key may be decided. */
  get queued(): Promise<void> {
    if (this.#isClosed || this.owners.length === 0) return Promise.resolve()
    this.#queued ??= new Promise((resolve) => {
      this.#tellQueued = resolve
    })
    return this.#queued
  }

  /** An action of this owner has ended; its row or letter was added. Call `onSettled` first. */
  ended(owner: string): void {
    this.owners.push(owner)
    if (this.#isSlow) this.#passOn()
  }

  /** Another action of the event takes long: what there is is written without waiting for it. */
  slow(): void {
    this.#isSlow = true
    if (this.owners.length > 0) this.#passOn()
  }

  #passOn(): void {
    if (!this.#writeEarly || this.#isClosed) return
    const part = new Leftovers()
    part.rows = this.rows
    part.letters = this.letters
    part.alerts = this.alerts
    part.owners = this.owners
    part.#onSettled = this.#onSettled
    this.rows = []
    this.letters = []
    this.alerts = []
    this.owners = []
    this.#onSettled = []
    this.#writeEarly(part)
    this.#tellQueued()
    this.#queued = undefined
  }

  /** Nothing is added any more. */
  close(): void {
    this.#isClosed = true
    this.#tellQueued()
  }

  /** Called when all of it is committed, or when it will not be written by this run. */
  onSettled(callback: () => void): void {
    this.#onSettled.push(callback)
  }

  settled(): void {
    for (const callback of this.#onSettled) callback()
  }

  /** The handler failed: the event is handled again, and nothing of this is written. */
  drop(): void {
    this.close()
    this.settled()
  }
}
