/** The tables of the simulated database. Positions are small here, so they are numbers. */
import type { Range } from './ranges.ts'

export interface SubscriptionRow {
  readonly id: string
  generation: number
  paused: boolean
  status: string
  reason: string | null
}

export interface PartitionRow {
  readonly id: string
  owner: string | null
  term: number
  clean: boolean
  deaths: number
  position: number
  done: readonly Range[]
  lastEventId: string | null
  save: number
  /** JSON text. */
  settled: string
  trying: number | null
  tries: number
}

export interface ProcessRow {
  readonly process: string
  lease: string | null
  leaseUntil: number
  /** Its lock proves that it lives. */
  locked: boolean
}

export type LetterStatus = 'dead' | 'redriving' | 'resolved' | 'discarded'

export interface LetterRow {
  readonly id: number
  readonly kind: string
  readonly owner: string
  readonly key: string
  readonly eventId: string
  readonly position: number
  /** JSON text. */
  readonly event: string
  error: string
  attempts: number
  status: LetterStatus
  parks: boolean
  streak: boolean
  /** The row that it is made of again. */
  readonly delivery: DeliveryRow | null
}

export interface ParkedRow {
  readonly owner: string
  readonly position: number
  readonly key: string
  /** JSON text. */
  readonly event: string
}

export interface LaneRow {
  readonly lane: number
  readonly kind: string
  readonly name: string
  readonly destination: string
  readonly tenant: string
  readonly priority: number
}

/** Work that waits for an attempt, or is claimed for one. */
export interface DeliveryRow {
  segment: number
  readonly id: number
  readonly lane: number
  readonly owner: string
  readonly key: string | null
  readonly ordered: boolean
  readonly eventId: string | null
  /** JSON text. */
  readonly payload: string
  readonly createdAt: number
  runAt: number
  attempts: number
  /** The claim, and the worker that has it. */
  token: string | null
  worker: string | null
  /** Claimed as what may have ended a process. */
  alone: boolean
  /** By a transaction that is not over. */
  isLocked: boolean
  readonly letter: number | null
}

export interface WorkerRow {
  readonly worker: string
  readonly process: string
  names: readonly NameOfWork[]
}

export interface NameOfWork {
  readonly kind: string
  readonly name: string
}

export class Tables {
  readonly subscriptions = new Map<string, SubscriptionRow>()
  readonly partitions = new Map<string, PartitionRow>()
  readonly processes = new Map<string, ProcessRow>()
  letters: LetterRow[] = []
  parked: ParkedRow[] = []
  readonly lanes: LaneRow[] = []
  /** By id. */
  readonly deliveries = new Map<number, DeliveryRow>()
  readonly workers = new Map<string, WorkerRow>()
  nextId = 1

  addSubscription(id: string): void {
    this.subscriptions.set(id, { id, generation: 1, paused: false, status: 'active', reason: null })
    this.partitions.set(id, {
      id,
      owner: null,
      term: 0,
      clean: true,
      deaths: 0,
      position: 0,
      done: [],
      lastEventId: null,
      save: 0,
      settled: '{}',
      trying: null,
      tries: 0,
    })
  }
}
