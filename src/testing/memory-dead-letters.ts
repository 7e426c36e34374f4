/** Dead letters without a database, and the events that wait behind them. */
import type {
  DeadLetter,
  DeadLetters,
  LetterAction,
  LetterCause,
  LetterFilter,
  NewLetter,
} from '../dead-letters/index.ts'
import { ownCopy, toWire } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import { type Clock, createTestClock } from '../runtime/index.ts'

type Changeable<T> = { -readonly [Key in keyof T]: T[Key] }

export interface KeptLetter extends Changeable<Omit<DeadLetter, 'waiting'>> {
  /** Whether later events of the key wait behind it. */
  parks: boolean
  changedAt: Date
}

export interface MemoryDeadLetters extends DeadLetters {
  /** As an owner would: a second letter for the same event and owner counts its attempts to the first. */
  add(letter: NewLetter): DeadLetter
}

/** A place for dead letters in tests. Nobody owns it: a redriven letter stays marked until the test looks. */
export function memoryDeadLetters({ clock = createTestClock() }: { clock?: Clock } = {}): MemoryDeadLetters {
  const store = new LetterStore(clock)
  return { ...createMemoryDeadLetters(store, async () => {}), add: (letter) => store.show(store.add(letter)) }
}

/** `marked` is called after letters were marked, and awaited. */
export function createMemoryDeadLetters(store: LetterStore, marked: () => Promise<void>): DeadLetters {
  type Which = bigint | readonly bigint[] | LetterFilter
  async function mark(which: Which, status: 'redriving' | 'discarded', { who = 'unknown', reason }: LetterAction) {
    const chosen = store.select({ ...toFilter(which), status: 'dead' })
    for (const letter of chosen) store.change(letter, { status, who, reason: reason ?? null })
    if (chosen.length > 0) await marked()
    return chosen.length
  }
  return {
    list: async ({ limit = 100, ...filter } = {}) =>
      store
        .select(filter)
        .slice(0, limit)
        .map((one) => store.show(one)),
    count: async ({ atMost = Number.POSITIVE_INFINITY, ...filter } = {}) =>
      Math.min(store.select(filter).length, atMost),
    causes: async ({ limit = 50 } = {}) =>
      toCauses(store.select({ status: 'dead' }).map((one) => store.show(one))).slice(0, limit),
    show: async (id) => store.select({ ids: [id] }).map((one) => store.show(one))[0],
    redrive: (which, action = {}) => mark(which, 'redriving', action),
    discard: (which, action = {}) => mark(which, 'discarded', action),
    async *export(filter = {}) {
      for (const letter of store.select(filter)) yield toExport(store.show(letter))
    },
  }
}

function toCauses(letters: readonly DeadLetter[]): LetterCause[] {
  const groups = new Map<string, DeadLetter[]>()
  for (const letter of letters) {
    const { code = letter.error.name, message } = letter.error
    const cause = JSON.stringify([letter.kind, letter.owner, code, message.replace(/\d+/g, '0')])
    groups.set(cause, [...(groups.get(cause) ?? []), letter])
  }
  return [...groups.values()]
    .map((group) => {
      const times = group.map(({ lastAttemptAt }) => lastAttemptAt.getTime())
      const { id, kind, owner, error } = group[0]!
      const parkedKeys = new Set(group.filter(({ waiting }) => waiting > 0).map(({ key }) => key)).size
      const { code = error.name, message } = error
      const [oldest, newest] = [new Date(Math.min(...times)), new Date(Math.max(...times))]
      return { kind, owner, code, message, count: group.length, parkedKeys, oldest, newest, sample: id }
    })
    .sort((a, b) => b.count - a.count)
}

export class LetterStore {
  #letters: KeptLetter[] = []
  /** Owner → key → what waits. A key without anything waiting may still be parked. */
  readonly #parked = new Map<string, Map<string, AnyEvent[]>>()
  readonly #clock: Clock
  #lastId = 0n

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(letter: NewLetter): KeptLetter {
    const { attempts, parks, sinceFirstMs, ...rest } = letter
    const now = this.#clock.now()
    if (parks) this.#keysOf(letter.owner).set(letter.key, this.waiting(letter.owner, letter.key))
    const same = this.#letters.find(
      (one) => one.kind === rest.kind && one.owner === rest.owner && one.event.id === rest.event.id,
    )
    if (same) {
      this.change(same, {
        status: 'dead',
        error: rest.error,
        attempts: same.attempts + attempts,
        parks,
        lastAttemptAt: now,
      })
      return same
    }
    const fresh = { who: null, reason: null, status: 'dead', lastAttemptAt: now, changedAt: now } as const
    const firstAttemptAt = new Date(now.getTime() - sinceFirstMs)
    const kept: KeptLetter = { id: ++this.#lastId, ...rest, ...fresh, attempts, parks, firstAttemptAt }
    this.#letters.push(kept)
    return kept
  }

  change(letter: KeptLetter, changes: Partial<KeptLetter>): void {
    Object.assign(letter, changes, { changedAt: this.#clock.now() })
  }

  /** Newest first. */
  select(filter: LetterFilter): KeptLetter[] {
    return this.#letters.filter((letter) => this.#matches(letter, filter)).reverse()
  }

  show({ parks, changedAt: _, ...letter }: KeptLetter): DeadLetter {
    return {
      ...letter,
      event: ownCopy(letter.event),
      waiting: parks ? this.waiting(letter.owner, letter.key).length : 0,
    }
  }

  /** Somebody asked for something: to run it again, or to go on behind it. In position order. */
  marked(owner: string): KeptLetter[] {
    if (this.#letters.length === 0) return []
    const isMarked = ({ status, parks }: KeptLetter) => status === 'redriving' || (parks && status !== 'dead')
    return this.#letters.filter((one) => one.owner === owner && isMarked(one)).sort(byPosition)
  }

  /** Whether a letter stands before whatever waits for this key. */
  isBlocked(owner: string, key: string): boolean {
    const blocks = ({ status, parks }: KeptLetter) => parks && (status === 'dead' || status === 'redriving')
    return this.#letters.some((one) => one.owner === owner && one.key === key && blocks(one))
  }

  isParked(owner: string, key: string): boolean {
    return this.#parked.get(owner)?.has(key) ?? false
  }

  park(owner: string, key: string, event: AnyEvent): void {
    this.waiting(owner, key).push(event)
  }

  waiting(owner: string, key: string): AnyEvent[] {
    return this.#parked.get(owner)?.get(key) ?? []
  }

  /** Keys that wait, with their events. */
  parked(owner: string): ReadonlyMap<string, readonly AnyEvent[]> {
    return this.#keysOf(owner)
  }

  /** Nothing of the key waits and no letter of it is dead: it flows again. */
  free(owner: string, key: string): void {
    for (const letter of this.#letters) if (letter.owner === owner && letter.key === key) letter.parks = false
    this.#parked.get(owner)?.delete(key)
  }

  /** Of one owner, or of all. */
  clear(owner?: string): void {
    this.#letters = owner === undefined ? [] : this.#letters.filter((letter) => letter.owner !== owner)
    if (owner === undefined) this.#parked.clear()
    else this.#parked.delete(owner)
  }

  #keysOf(owner: string): Map<string, AnyEvent[]> {
    const keys = this.#parked.get(owner) ?? new Map<string, AnyEvent[]>()
    this.#parked.set(owner, keys)
    return keys
  }

  #matches(letter: KeptLetter, filter: LetterFilter): boolean {
    const { kind, owner, key, status, error, eventId, ids, untouchedMs, before } = filter
    const untouchedSince = untouchedMs === undefined ? undefined : this.#clock.now().getTime() - untouchedMs
    return (
      (kind ?? letter.kind) === letter.kind &&
      (owner ?? letter.owner) === letter.owner &&
      (key ?? letter.key) === letter.key &&
      (status ?? letter.status) === letter.status &&
      (eventId ?? letter.event.id) === letter.event.id &&
      (error === undefined || JSON.stringify(letter.error).includes(error)) &&
      (ids === undefined || ids.includes(letter.id)) &&
      (untouchedSince === undefined || letter.changedAt.getTime() < untouchedSince) &&
      (before === undefined || letter.id < before)
    )
  }
}

function toFilter(which: bigint | readonly bigint[] | LetterFilter): LetterFilter {
  if (typeof which === 'bigint') return { ids: [which] }
  return Array.isArray(which) ? { ids: which } : (which as LetterFilter)
}

function byPosition(a: KeptLetter, b: KeptLetter): number {
  return a.event.position < b.event.position ? -1 : 1
}

function toExport({ id, event, firstAttemptAt, lastAttemptAt, ...letter }: DeadLetter): Record<string, unknown> {
  return {
    id: String(id),
    ...letter,
    first_attempt_at: firstAttemptAt.toISOString(),
    last_attempt_at: lastAttemptAt.toISOString(),
    event: toWire(event),
  }
}
