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
  leaseUntil: number | null
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
}

export interface ParkedRow {
  readonly owner: string
  readonly position: number
  readonly key: string
  /** JSON text. */
  readonly event: string
}

/** Work that waits for an attempt. */
export interface DeliveryRow {
  readonly owner: string
  readonly key: string | null
  readonly eventId: string
  readonly attempts: number
}

export class Tables {
  readonly subscriptions = new Map<string, SubscriptionRow>()
  readonly partitions = new Map<string, PartitionRow>()
  /** By process: whether it held its lock when it last said so. */
  readonly processes = new Map<string, { locked: boolean }>()
  letters: LetterRow[] = []
  parked: ParkedRow[] = []
  deliveries: DeliveryRow[] = []
  nextId = 1

  addSubscription(id: string): void {
    this.subscriptions.set(id, { id, generation: 1, paused: false, status: 'active', reason: null })
    this.partitions.set(id, {
      id,
      owner: null,
      term: 0,
      leaseUntil: null,
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
