/**
 * Workflows kept in memory, by the rules of the Postgres store: an instance belongs to one transaction at a time, what a
 * transaction writes is seen by nobody else until it ends, and then all of it or nothing.
 */

import { AftercommitError } from '../errors.ts'
import { aggregateKey, parseJson, StoredEvent } from '../events/index.ts'
import type { Clock } from '../runtime/index.ts'
import {
  type Found,
  type HistoryEvent,
  type InstanceRef,
  type InstanceSummary,
  type RecordedOutcome,
  type Standing,
  type StepRequest,
  type StepWrite,
  UniqueKeyTakenError,
  type WorkflowStore,
  type Written,
} from '../workflows/index.ts'
import type { LetterStore } from './memory-dead-letters.ts'
import { type Kept, type KeptEvent, NOTHING_KEPT, schemaVersionOf, writeStep } from './workflow-kept.ts'
import { MemoryLocks } from './workflow-locks.ts'
import type { MemoryWork } from './workflow-work.ts'

/** A transaction: what it has written so far, and what it does when it commits. */
export class MemoryStep {
  kept = new Map<string, Kept>()
  onCommit: (() => void)[] = []
  ended = false

  /** What `fn` writes is forgotten when it fails; the transaction goes on. */
  async savepoint<T>(fn: () => Promise<T>): Promise<T> {
    const before = { kept: new Map(this.kept), onCommit: [...this.onCommit] }
    try {
      return await fn()
    } catch (error) {
      Object.assign(this, before)
      throw error
    }
  }
}

type Decide = (found: Found) => StepWrite | undefined

export class MemoryStore implements WorkflowStore {
  readonly #clock: Clock
  readonly #work: MemoryWork
  readonly #letters: LetterStore
  readonly #locks = new MemoryLocks()
  #kept = new Map<string, Kept>()
  #lastPosition = 0n

  constructor(clock: Clock, work: MemoryWork, letters: LetterStore) {
    this.#clock = clock
    this.#work = work
    this.#letters = letters
  }

  /** All that `fn` does through the transaction it is given, or nothing. */
  async transaction<T>(fn: (tx: MemoryStep) => Promise<T>): Promise<T> {
    const tx = new MemoryStep()
    try {
      const result = await fn(tx)
      for (const [key, kept] of tx.kept) this.#kept.set(key, kept)
      for (const done of tx.onCommit) done()
      return result
    } finally {
      tx.ended = true
      this.#locks.release(tx)
    }
  }

  async step(request: StepRequest, decide: Decide): Promise<Written | undefined> {
    if (request.tx !== undefined) return this.#stepIn(asStep(request.tx), request, decide)
    return this.transaction((tx) => this.#stepIn(tx, request, decide))
  }

  async load(instance: InstanceRef, options: { snapshotVersion: number; upTo?: number | undefined }) {
    const kept = this.#kept.get(keyOf(instance))
    if (kept === undefined || kept.version === 0) return undefined
    return this.#toFound(kept, { ...options, known: () => undefined, inputId: undefined })
  }

  async history(instance: InstanceRef, { from, to, limit }: { from: number; to: number; limit: number }) {
    const { events } = this.#kept.get(keyOf(instance)) ?? NOTHING_KEPT
    return events.slice(from - 1, Math.min(to, from - 1 + limit)).map((event) => new StoredEvent(event))
  }

  async list({ type, limit, before }: { type: string | undefined; limit: number; before: bigint | undefined }) {
    return [...this.#kept.values()]
      .filter((kept) => kept.version > 0 && (type ?? kept.type) === kept.type)
      .filter(({ position }) => before === undefined || position < before)
      .sort((a, b) => (a.position > b.position ? -1 : 1))
      .slice(0, limit)
      .map(toSummary)
  }

  async standing(instance: InstanceRef, generation: number): Promise<Standing> {
    const kept = this.#kept.get(keyOf(instance))
    if (kept !== undefined && (kept.completedAt !== null || kept.generation !== generation)) return 'over'
    return kept?.paused ? 'paused' : 'open'
  }

  async resolveReported(
    tx: MemoryStep,
    letter: { kind: 'effect' | 'timer'; owner: string; eventId: string },
  ): Promise<void> {
    const told = { status: 'resolved', who: `workflow ${letter.owner}`, reason: 'the workflow was told' } as const
    for (const dead of this.#letters.select({ ...letter, status: 'dead' })) {
      tx.onCommit.push(() => this.#letters.change(dead, { ...told, parks: false }))
    }
  }

  /** False when there is nothing to change. */
  setPaused(instance: InstanceRef, paused: boolean): Promise<boolean> {
    return this.transaction(async (tx) => {
      const key = keyOf(instance)
      await this.#locks.take(key, tx)
      const kept = this.#kept.get(key)
      if (kept === undefined || kept.version === 0 || kept.completedAt !== null || kept.paused === paused) return false
      tx.kept.set(key, { ...kept, paused })
      tx.onCommit.push(() => this.#work.setHeld(instance, paused))
      return true
    })
  }

  async #stepIn(tx: MemoryStep, request: StepRequest, decide: Decide): Promise<Written | undefined> {
    const { instance, alongside } = request
    const key = keyOf(instance)
    await this.#locks.take(key, tx)
    if (tx.ended) throw txEnded()
    const before = tx.kept.get(key) ?? this.#kept.get(key) ?? { ...NOTHING_KEPT, ...instance }
    const write = decide(this.#toFound(before, request))
    // The claim counts under the lock of the instance: whoever cancelled this has ended by now.
    await alongside?.(tx as never)
    if (write === undefined) return undefined
    const holder = write.uniqueKey === undefined ? undefined : await this.#holderOf(tx, instance, write.uniqueKey)
    if (holder !== undefined) {
      // What came alongside must not be done without it.
      if (alongside) throw new UniqueKeyTakenError(instance, write.uniqueKey!, holder)
      return { takenBy: holder }
    }
    const positions = write.events.map(() => ++this.#lastPosition)
    const after = writeStep(before, write, positions, this.#clock.now())
    tx.kept.set(key, after)
    tx.onCommit.push(() => this.#work.add(instance, write))
    return { position: after.position }
  }

  /** Whoever comes second waits for the end of the first, to know whether it has the key. */
  async #holderOf(tx: MemoryStep, { type, id }: InstanceRef, uniqueKey: string): Promise<string | undefined> {
    await this.#locks.take(JSON.stringify([type, uniqueKey]), tx)
    const all = new Map([...this.#kept, ...tx.kept])
    for (const one of all.values()) {
      if (one.type === type && one.id !== id && one.uniqueKey === uniqueKey) return one.id
    }
    return undefined
  }

  #toFound(kept: Kept, { known, snapshotVersion, inputId, upTo = kept.version }: Reading): Found {
    const recorded = inputId === undefined ? undefined : toRecorded(kept.inputs.get(inputId))
    const { version = 0 } = known() ?? {}
    const remembered = version <= kept.version ? version : 0
    const snapshot = kept.snapshots.findLast(
      ({ version, state }) =>
        version > remembered && version <= upTo && (state === undefined || state.version === snapshotVersion),
    )
    const [after, until] =
      recorded === undefined
        ? [snapshot?.version ?? remembered, upTo]
        : recorded.outcome === 'accepted'
          ? [recorded.from - 1, recorded.to]
          : [0, 0]
    return {
      now: this.#clock.now(),
      version: kept.version,
      position: kept.position,
      generation: kept.generation,
      completed: kept.completedAt !== null,
      paused: kept.paused,
      holds: this.#work.holdsEvents(kept),
      uniqueKey: kept.uniqueKey,
      snapshot: snapshot && {
        version: snapshot.version,
        state: snapshot.state && { json: parseJson(snapshot.state.json) },
      },
      events: kept.events.slice(after, until).map(toHistoryEvent),
      followsKnown: remembered > 0,
      recorded,
    }
  }
}

interface Reading extends Pick<StepRequest, 'known' | 'snapshotVersion' | 'inputId'> {
  readonly upTo?: number | undefined
}

function asStep(tx: unknown): MemoryStep {
  if (!(tx instanceof MemoryStep)) {
    throw new AftercommitError(
      'NOT_A_TRANSACTION',
      '`tx` is not a transaction of these workflows in memory, so the input was not taken. Pass the one that ' +
        '`workflows.transaction(async (tx) => …)` gives.',
    )
  }
  if (tx.ended) throw txEnded()
  return tx
}

function txEnded(): AftercommitError {
  return new AftercommitError('TX_ENDED', 'This transaction has already ended, so the input was not taken.')
}

function keyOf({ type, id }: InstanceRef): string {
  return aggregateKey(type, id)
}

/** Read anew each time: nobody holds the same object. */
function toHistoryEvent(event: KeptEvent): HistoryEvent {
  const { version, position, id, type, payload } = event
  return { version, position, id, type, schemaVersion: schemaVersionOf(event), payload: parseJson(payload as string) }
}

function toRecorded(json: string | undefined): RecordedOutcome | undefined {
  return json === undefined ? undefined : (parseJson(json) as RecordedOutcome)
}

function toSummary({ events: _, snapshots: __, inputs: ___, completedAt, ...kept }: Kept): InstanceSummary {
  return { ...kept, completed: completedAt !== null, completedAt }
}
