/**
 * Deliveries without a database: the first attempt at once, later ones from a list of rows, on a clock that is moved to
 * where the next one is due. What an attempt does, whether there is another and after how long, and what a dead letter
 * says is decided by the code that runs in production. One thing happens at a time, so a test sees the same every time.
 *
 *   done        nothing is kept
 *   failed      a row that waits, or a dead letter
 *   held        a row that waits behind an earlier one of its key, be it a row or a dead letter
 */
import { toErrorRecord } from '../dead-letters/index.ts'
import {
  type Delivering,
  type Delivery,
  decideOutcome,
  type Reaction,
  type Reactions,
  type RunContext,
  type Work,
} from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { parseJson, stringifyJson } from '../events/index.ts'
import type { Database, Transaction } from '../postgres/index.ts'
import { createInTurn, type TestClock } from '../runtime/index.ts'
import type { MemoryDeadLetters } from './memory-dead-letters.ts'

export interface MemoryDelivery {
  readonly reactions: Reactions
  readonly delivering: Pick<Delivering, 'add'>
  readonly database: Pick<Database, 'transaction'>
  /** What can be delivered, by name. */
  register(work: Work): void
  /** Does what is there to be done, however far in the future. What is held stays. */
  drain(): Promise<void>
}

interface Row extends Omit<Delivery, 'attempt'> {
  readonly work: Work
  readonly attempts: number
  readonly dueMs: number
  readonly firstMs: number
}

export function createMemoryDelivery(clock: TestClock, deadLetters: MemoryDeadLetters): MemoryDelivery {
  const works = new Map<string, Work>()
  let rows: Row[] = []
  let lastId = 0n
  const inTurn = createInTurn()

  async function begin(reaction: Reaction): Promise<void> {
    const { work, key } = reaction
    if (key !== null && ((await hasLetter(work.name, key)) || rows.some((row) => isBefore(row, work.name, key)))) {
      rows.push(toRow(reaction, 0))
      reaction.onEnd?.({ outcome: 'kept' })
      return
    }
    try {
      await reaction.run(createContext())
    } catch (error) {
      const outcome = await failed(toRow(reaction, 0), error)
      reaction.onEnd?.({ outcome, error })
      return
    }
    reaction.onEnd?.({ outcome: 'success' })
  }

  async function attempt(row: Row): Promise<void> {
    try {
      await row.work.run(toDelivery(row, row.attempts + 1), createContext())
    } catch (error) {
      await failed(row, error)
    }
  }

  /** `row` as it was before this attempt. */
  async function failed(row: Row, error: unknown): Promise<'retry' | 'dead'> {
    const { work } = row
    const attempts = row.attempts + 1
    // Without jitter: a test may say when the next attempt is due.
    const outcome = decideOutcome({ error, attempt: attempts }, { ...work.retry, jitter: 0 })
    if (outcome.kind === 'retry') {
      const dueMs = clock.monotonic() + outcome.delayMs
      rows.push({ ...row, attempts: outcome.counts ? attempts : row.attempts, dueMs })
      return 'retry'
    }
    const delivery = toDelivery(row, attempts)
    if (!work.discards) addLetter(row, delivery, error)
    await work.onDead?.(NO_DATABASE, delivery, error)
    return 'dead'
  }

  function addLetter({ work, firstMs }: Row, delivery: Delivery, error: unknown): void {
    const event = work.toEvent(delivery)
    deadLetters.add({
      kind: delivery.kind,
      owner: delivery.owner,
      key: delivery.key ?? event.key,
      event,
      error: toErrorRecord(work.toLetterError?.(error, delivery.attempt) ?? error),
      attempts: delivery.attempt,
      sinceFirstMs: clock.monotonic() - firstMs,
      parks: delivery.key !== null,
    })
  }

  /** The one that is due first of those that nothing holds. */
  async function takeNext(): Promise<Row | undefined> {
    const inOrder = rows.toSorted((one, other) => one.dueMs - other.dueMs || (one.id < other.id ? -1 : 1))
    for (const row of inOrder) {
      const { key } = row
      const isHeld =
        key !== null &&
        (rows.some((other) => other.id < row.id && isBefore(other, row.name, key)) || (await hasLetter(row.owner, key)))
      if (isHeld) continue
      rows = rows.filter((other) => other !== row)
      return row
    }
    return undefined
  }

  async function hasLetter(owner: string, key: string): Promise<boolean> {
    const counts = await Promise.all(
      (['dead', 'redriving'] as const).map((status) => deadLetters.count({ kind: 'action', owner, key, status })),
    )
    return counts.some((count) => count > 0)
  }

  function toRow({ work, owner, destination, tenant, key, payload }: Reaction, attempts: number): Row {
    const { kind, name } = work
    return newRow({ work, kind, name, owner, destination, tenant, key, payload: payload() }, attempts)
  }

  function newRow(given: Omit<Row, 'id' | 'createdAt' | 'attempts' | 'dueMs' | 'firstMs'>, attempts: number): Row {
    const nowMs = clock.monotonic()
    const payload = asStored(given.payload)
    return { ...given, payload, id: ++lastId, createdAt: clock.now(), attempts, dueMs: nowMs, firstMs: nowMs }
  }

  return {
    register: (work) => void works.set(work.name, work),
    reactions: {
      begin: async () => {},
      react: (reactions) =>
        inTurn(async () => {
          for (const reaction of reactions) await begin(reaction)
        }),
    },
    delivering: {
      async add(_, deliveries) {
        const added = deliveries.map(({ kind, name, owner, payload, key = null, destination = '', tenant = '' }) =>
          newRow({ work: works.get(name)!, kind, name, owner, payload, key, destination, tenant }, 0),
        )
        rows.push(...added)
        return added.map(({ id }) => id)
      },
    },
    database: { transaction: (fn) => fn(NO_DATABASE) },
    async drain() {
      for (let row = await takeNext(); row !== undefined; row = await takeNext()) {
        const waitMs = row.dueMs - clock.monotonic()
        if (waitMs > 0) await clock.advance(waitMs)
        await attempt(row)
      }
    },
  }
}

function isBefore(row: Row, name: string, key: string): boolean {
  return row.name === name && row.key === key
}

/** What a row would hold after the database had it. */
function asStored(payload: unknown): unknown {
  const limits = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, name: 'payload' }
  return parseJson(stringifyJson(payload, limits), { maxDepth: 1_010 })
}

function toDelivery({ work: _, attempts, dueMs, firstMs, ...row }: Row, attempt: number): Delivery {
  return { ...row, attempt }
}

function createContext(): RunContext {
  const { signal } = new AbortController()
  return { signal, complete: async () => {} }
}

/** Handed on, and asked by nobody. */
const WORDS: Partial<Transaction> = {
  schema: 'memory',
  query: () =>
    Promise.reject(
      new AftercommitError('NO_DATABASE', 'A test executor has no database. Use `testDatabase()` for what needs one.'),
    ),
}
const NO_DATABASE = WORDS as Transaction
