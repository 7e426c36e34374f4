/**
 * Writes the checkpoint of one run, with what its events leave behind. An event that leaves something stays unfinished
 * until that is written. What can happen, failures first:
 *
 *   no answer               the same write is repeated under the same number until its outcome is known, before anything else
 *                           of the run is written
 *   the content is refused  run records are dropped, then the write is halved down to one event; an event that is refused
 *                           alone leaves a dead letter without its content
 *   the lease changed hands nothing was written, and nothing more is
 *   nothing left behind     the bare checkpoint
 *   a slow event            what it has left so far is written with the owners of those actions, and the event stays unfinished
 */
import { copyEvent, toErrorRecord } from '../dead-letters/index.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Queryable, sqlstateOf } from '../postgres/index.ts'
import type { Logger } from '../runtime/index.ts'
import type { Lease } from './lease-statements.ts'
import { Leftovers } from './leftovers.ts'
import type { Progress } from './progress.ts'
import { type Save, toLeftJson, writeSave } from './save-statements.ts'

export interface SaverParts {
  readonly db: Queryable
  readonly lease: Lease
  readonly progress: Progress
  readonly logger: Logger
  /** Another owner has the lease. */
  readonly onLost: () => void
  /** A write was committed. */
  readonly onSaved: (save: Save) => void
}

/** What an event leaves; with `isPart`, before the event is finished. */
interface Entry {
  readonly event: AnyEvent
  readonly isPart: boolean
  left: Leftovers
  /** The content was refused: dead letters without it stand for the event. */
  isBare?: boolean
}

interface Attempt extends Save {
  readonly entries: readonly Entry[]
  /** Events without leftovers that this write covers. */
  readonly covers: number
}

/** Rows, letters and run records in one write. A single event may have more. */
const MOST_AT_ONCE = 500

export class Saver {
  readonly #parts: SaverParts
  #number: bigint
  #entries: Entry[] = []
  /** Owners of settled actions by the position of their event. */
  readonly #settled: Map<bigint, readonly string[]>
  /** Events that were handled without leftovers since the last committed write was made up. */
  #covered = 0
  #unanswered: Attempt | undefined
  /** Events in one write, while the content of writes is refused. */
  #most = Number.POSITIVE_INFINITY

  constructor(parts: SaverParts) {
    this.#parts = parts
    const { save, settled } = parts.lease
    this.#number = save
    this.#settled = new Map(Object.entries(settled).map(([position, owners]) => [BigInt(position), owners]))
  }

  /** Owners of actions of this event whose row or letter is written or about to be. */
  settledOf({ position }: AnyEvent): readonly string[] {
    return this.#settled.get(position) ?? []
  }

  /** Events that were handled and are in no committed write. */
  get unsaved(): number {
    return this.#covered + (this.#unanswered?.covers ?? 0)
  }

  /** The event is finished; it leaves nothing. */
  finished(): void {
    this.#covered++
  }

  /** The event is finished once what it leaves is written. */
  keep(event: AnyEvent, left: Leftovers): void {
    this.#entries.push({ event, left, isPart: false })
    left.close()
  }

  /** The event goes on, and what it has left so far is written. */
  keepPart(event: AnyEvent, left: Leftovers): void {
    this.#entries.push({ event, left, isPart: true })
    this.#settled.set(event.position, [...this.settledOf(event), ...left.owners])
    left.close()
  }

  /** Writes how far the run is now. Call `settle` first. */
  async save(): Promise<void> {
    while ((await this.#write(this.#next())) && this.#entries.length > 0) {}
  }

  /** Finds out what became of a write without an answer, by repeating it. */
  async settle(): Promise<void> {
    if (this.#unanswered) await this.#write(this.#unanswered)
  }

  #next(): Attempt {
    const entries = this.#chosen()
    const finishing = entries.filter(({ isPart }) => !isPart)
    const checkpoint = this.#parts.progress.checkpoint(finishing.map(({ event }) => event))
    const covers = this.#covered
    this.#covered = 0
    const left = entries.length === 0 ? undefined : this.#toJson(entries, checkpoint.position)
    this.#number++
    return { number: this.#number, checkpoint, left, entries, covers }
  }

  #toJson(entries: readonly Entry[], passed: bigint): string {
    const lefts = entries.map(({ left }) => left)
    return toLeftJson(lefts, this.#settledAfter(entries.length, passed))
  }

  /** Owners of unfinished events whose row or letter is in the database once the first `count` entries are written. */
  #settledAfter(count: number, passed: bigint): ReadonlyMap<bigint, readonly string[]> {
    const settled = new Map([...this.#settled].filter(([position]) => position > passed))
    for (const { event, left, isPart } of this.#entries.slice(count)) {
      const owners = isPart ? settled.get(event.position) : undefined
      if (!owners) continue
      const written = owners.filter((owner) => !left.owners.includes(owner))
      if (written.length > 0) settled.set(event.position, written)
      else settled.delete(event.position)
    }
    return settled
  }

  /** No attempt of these events follows: their checkpoint is committed. */
  #forgetSettled(passed: bigint): void {
    for (const position of this.#settled.keys()) if (position <= passed) this.#settled.delete(position)
  }

  /** In the order in which the events ended, so that rows of one key keep theirs. */
  #chosen(): readonly Entry[] {
    let weight = 0
    let count = 0
    for (const { left } of this.#entries) {
      weight += left.weight
      if (count > 0 && (weight > MOST_AT_ONCE || count >= this.#most)) break
      count++
    }
    return this.#entries.slice(0, count)
  }

  /** False when the lease changed hands. */
  async #write(attempt: Attempt): Promise<boolean> {
    const { db, lease, progress, onLost, onSaved } = this.#parts
    this.#unanswered = attempt
    let isSaved: boolean
    try {
      isSaved = await writeSave(db, lease, attempt)
    } catch (error) {
      const isHopeless = attempt.entries.length === 1 && attempt.entries[0]!.isBare === true
      if (attempt.left === undefined || isHopeless || !isRefusal(error)) throw error
      this.#unanswered = undefined
      this.#covered += attempt.covers
      this.#lighten(attempt.entries, error)
      return true
    }
    this.#unanswered = undefined
    if (!isSaved) {
      onLost()
      return false
    }
    this.#entries.splice(0, attempt.entries.length)
    this.#most *= 2
    this.#forgetSettled(attempt.checkpoint.position)
    for (const { event, left, isPart } of attempt.entries) {
      if (!isPart) progress.finish(event.position, event.id)
      left.settled()
    }
    onSaved(attempt)
    return true
  }

  /** The database refused the content and wrote nothing: less of it is written next. */
  #lighten(entries: readonly Entry[], error: unknown): void {
    const { logger, lease } = this.#parts
    const fields = { subscription: lease.id, err: error }
    const recording = entries.filter(({ left }) => left.runs.length > 0)
    if (recording.length > 0) {
      logger.error({ ...fields, events: recording.length }, 'run records were refused; what they tell of happened')
      for (const { left } of recording) left.runs = []
    } else if (entries.length > 1) {
      this.#most = entries.length >>> 1
    } else {
      const entry = entries[0]!
      logger.error(
        { ...fields, event_id: entry.event.id },
        'what an event leaves was refused; a dead letter stands for it',
      )
      entry.left = withoutContent(entry, error)
      entry.isBare = true
    }
  }
}

/** Wrong data, a violated constraint, a limit of the server: repeating the same content cannot help. */
function isRefusal(error: unknown): boolean {
  return /^(21|22|23|54)/.test(sqlstateOf(error) ?? '')
}

/** Dead letters that say what could not be written, and which cannot be redriven. */
function withoutContent({ event, left }: Entry, error: unknown): Leftovers {
  const bare = copyEvent(
    new AftercommitEvent({ ...event, metadata: event.metadata, payload: null, changes: null, previous: null }),
  )
  const refused = new Leftovers()
  refused.letters = [...left.rows, ...left.letters].map((one) => ({
    lane: one.lane,
    owner: one.owner,
    orderKey: null,
    key: event.key,
    eventId: event.id,
    position: event.position,
    event: bare,
    error: toErrorRecord(error),
    attempts: 1,
    sinceFirstMs: 0,
    payload: null,
  }))
  refused.owners = left.owners
  refused.redriven = left.redriven
  refused.onSettled(() => left.settled())
  return refused
}
