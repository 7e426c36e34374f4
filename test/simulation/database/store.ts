/**
 * The simulated database: tables in memory, and the meaning of each statement that the code under test sends. A statement
 * happens as a whole, at one moment of virtual time. Its safeties can be switched off one by one, to show that the
 * simulation finds what each of them guards against.
 */
import type { World } from '../world.ts'
import type { Safety } from './safeties.ts'
import { type DeliveryRow, type PartitionRow, type ProcessRow, Tables } from './tables.ts'

/** What the database tells those who keep the ledgers, at the moment of the commit. */
export interface Witness {
  /** Another owner. */
  onTerm(id: string): void
  /** `term`: of the owner that wrote. */
  onCheckpoint(id: string, term: number): void
  /** An event left a row or a letter in this term. */
  onLeft(kind: 'row' | 'letter', owner: string, eventId: string, term: number): void
  /** A row went: it was done. */
  onDone(row: DeliveryRow): void
  /** Rows were added. */
  onBell(): void
  /** Processes were told something on the channel. */
  onWord(word: string): void
}

export class Store extends Tables {
  readonly world: World
  readonly witness: Witness
  /** Which start of the server this is. */
  server = 1
  /** It takes connections. */
  isUp = true
  /** Processes whose connection holds their lock. */
  readonly locks = new Set<string>()
  /** Transactions that have written to rows of work and are not over. */
  readonly locking = new Set<object>()
  readonly #off: ReadonlySet<Safety>

  constructor(world: World, witness: Witness, off: ReadonlySet<Safety>) {
    super()
    this.world = world
    this.witness = witness
    this.#off = off
  }

  get now(): number {
    return this.world.now
  }

  /** Another transaction has rows of work locked. Statements that change or delete rows wait; claims pass over them. */
  isLockedFor(own: object | undefined): boolean {
    return this.locking.size > (own !== undefined && this.locking.has(own) ? 1 : 0)
  }

  isOff(safety: Safety): boolean {
    return this.#off.has(safety)
  }

  /** As the view of that name. */
  liveLeases(): ProcessRow[] {
    return [...this.processes.values()].filter(({ lease, leaseUntil }) => lease !== null && leaseUntil > this.now)
  }

  lives(lease: string | null): boolean {
    return this.liveLeases().some((row) => row.lease === lease)
  }

  /** Observers have leases of their own, and the lock of their process: `process#observer`. */
  readonly isLockless = ({ process, locked }: ProcessRow): boolean => locked && !this.locks.has(process.split('#')[0]!)

  /** The partition, if the writer names its present term and, where the statement asks for it, this start of the server. */
  ours(id: string, term: string, server?: string): PartitionRow | undefined {
    const partition = this.partitions.get(id)
    if (partition === undefined || (server !== undefined && server !== String(this.server))) return undefined
    return this.isOff('term') || partition.term === Number(term) ? partition : undefined
  }
}
