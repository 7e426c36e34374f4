/**
 * The in-memory twin: the words of an instance without a database, for tests of code that emits and handles. When
 * `await bus.emit(…)` returns, every handler has run, and so has everything they emitted in turn.
 *
 * Delivery is one at a time, in position order, subscriptions in the order of their registration. What a handler emits is
 * queued behind what is there already, so a handler that emits neither waits for itself nor overtakes anybody.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { DeadLetters } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import { aggregateKey, type EventDefinitions, type EventName, type EventOf, ownCopy } from '../events/index.ts'
import type { AftercommitOptions, Emit } from '../index.ts'
import type { AnyEvent } from '../log/index.ts'
import { createTestClock, type TestClock } from '../runtime/index.ts'
import {
  type SubscriptionHandle,
  type SubscriptionOptions,
  type Subscriptions,
  toDefinition,
} from '../subscriptions/index.ts'
import { createMemoryDeadLetters, LetterStore } from './memory-dead-letters.ts'
import { createMemoryHandle, stateOf } from './memory-handle.ts'
import { MemoryLog } from './memory-log.ts'
import { type HandlerFailure, MemoryReader } from './memory-reader.ts'
import { type MemoryTransaction, openTransaction } from './memory-transaction.ts'

export interface MemoryBusOptions<D extends EventDefinitions = EventDefinitions> {
  /** Which events exist. Without it any well-formed type is accepted, unchecked. */
  readonly events?: D | undefined
  readonly log?: Pick<NonNullable<AftercommitOptions['log']>, 'maxDepth'> | undefined
  readonly clock?: TestClock | undefined
}

/** Events of a key that wait behind a dead letter. */
export interface ParkedKey {
  readonly subscription: string
  readonly key: string
  readonly events: readonly AnyEvent[]
}

export interface MemoryBus<D extends EventDefinitions = EventDefinitions> {
  /** Appends one event, or many at once, and delivers. Rejects when nothing was emitted; never for what a handler does. */
  readonly emit: Emit<D>
  /** What is emitted through `tx` is delivered when `fn` has succeeded, all of it, or never. */
  transaction<T>(fn: (tx: MemoryTransaction<D>) => Promise<T>): Promise<T>
  subscribe<const P extends readonly string[] = readonly ['*']>(
    subscription: SubscriptionOptions<EventOf<D, P>, MemoryTransaction<D>> & { readonly on?: P | undefined },
  ): SubscriptionHandle
  readonly subscriptions: Subscriptions
  readonly deadLetters: DeadLetters
  /** Delivers what waits: history to a new subscription, the next try of one that is failing. */
  drain(): Promise<{ drained: boolean; head: bigint }>
  /** Every try of a handler that failed, in order. */
  readonly errors: readonly HandlerFailure[]
  /** Moves on by the delay before each retry; timeouts are measured with it. */
  readonly clock: TestClock
  /** Everything emitted and committed, in order. */
  publishedEvents(): EventOf<D>[]
  eventsOfType<Name extends EventName<D>>(type: Name): EventOf<D, readonly [Name]>[]
  eventsForAggregate(type: string, id: string): EventOf<D>[]
  eventCount(): number
  hasEvent(type: EventName<D>): boolean
  parkedKeys(): ParkedKey[]
  /** Forgets events, errors and letters. Subscriptions stay and go on with what comes next. */
  clear(): void
}

export function memoryBus<D extends EventDefinitions = EventDefinitions>(
  options: MemoryBusOptions<D> = {},
): MemoryBus<D> {
  const clock = options.clock ?? createTestClock()
  const definitions = options.events as EventDefinitions | undefined
  const log = new MemoryLog(clock, definitions?.streams ?? [])
  const letters = new LetterStore(clock)
  const readers = new Map<string, MemoryReader>()
  const errors: HandlerFailure[] = []
  const identity = {}
  const settings = {
    definitions,
    maxPayloadBytes: 1024 ** 2,
    maxNesting: 64,
    maxDepth: options.log?.maxDepth ?? 32,
    currentTraceparent: () => undefined,
    tell: undefined,
  }
  let delivery = 0
  let active = false
  let delivering: Promise<void> = Promise.resolve()

  /** Everything that can be delivered now. A handler does not wait for it: it is part of it. */
  function deliver(): Promise<void> {
    if (!active) delivering = run()
    return isDelivering(identity) ? Promise.resolve() : delivering
  }

  async function run(): Promise<void> {
    delivery++
    active = true
    try {
      for (let reader = nextReader(); reader; reader = nextReader()) await reader.step(delivery)
    } finally {
      // In the same breath as the last look: whoever emits from now on begins a new run.
      active = false
    }
  }

  /** The one whose next event is the oldest; the one registered first, when it is the same event. */
  function nextReader(): MemoryReader | undefined {
    let chosen: MemoryReader | undefined
    let lowest: bigint | undefined
    for (const reader of readers.values()) {
      const due = reader.due(delivery)
      if (due === undefined || (lowest !== undefined && due >= lowest)) continue
      chosen = reader
      lowest = due
    }
    return chosen
  }

  async function transaction<T>(fn: (tx: MemoryTransaction<D>) => Promise<T>): Promise<T> {
    const tx = openTransaction(log, settings)
    let result: T
    try {
      result = await fn(tx.words as MemoryTransaction<D>)
      tx.commit()
    } catch (error) {
      tx.rollBack()
      // What was numbered after it has waited for its end.
      await deliver()
      throw error
    }
    await deliver()
    return result
  }

  /** Checkpoints of subscriptions that were stopped: registered again, they go on from there. */
  const left = new Map<string, { position: bigint; paused: boolean }>()
  const handleParts = {
    log,
    letters,
    deliver,
    stop(id: string) {
      const reader = readers.get(id)
      if (reader) left.set(id, { position: reader.checkpoint.position, paused: reader.paused })
      readers.delete(id)
    },
    remove(id: string) {
      readers.delete(id)
      left.delete(id)
      letters.clear(id)
    },
  }

  function register(options: SubscriptionOptions): SubscriptionHandle {
    const definition = toDefinition(options)
    if (readers.has(definition.id)) {
      throw new AftercommitError(
        'BAD_OPTION',
        `Subscription "${definition.id}" is registered twice; the second was refused.`,
      )
    }
    const reader = new MemoryReader(definition, {
      log,
      letters,
      clock,
      definitions,
      begin: () => openTransaction(log, settings),
      within: (fn) => deliveries.run({ bus: identity, outer: deliveries.getStore() }, fn),
      failed: (failure) => errors.push(failure),
      checkpointOf: (id) => readers.get(id)?.checkpoint.position ?? 0n,
    })
    const before = left.get(definition.id)
    if (before) {
      reader.seek(before.position)
      reader.paused = before.paused
    }
    readers.set(definition.id, reader)
    return createMemoryHandle(reader, handleParts)
  }

  const find = (matches: (event: AnyEvent) => boolean) => log.events.filter(matches).map(ownCopy)
  const bus = {
    emit: (first: never, event: never) => transaction((tx) => tx.emit(first, event)),
    transaction,
    subscribe: register,
    subscriptions: {
      get(id: string) {
        const reader = readers.get(id)
        if (!reader) throw new AftercommitError('UNKNOWN_SUBSCRIPTION', `There is no subscription "${id}" on this bus.`)
        return createMemoryHandle(reader, handleParts)
      },
      list: async () => [...readers.values()].map((reader) => stateOf(reader, log, letters)),
    },
    deadLetters: createMemoryDeadLetters(letters, deliver),
    async drain() {
      await deliver()
      const head = log.frontier
      return { drained: [...readers.values()].every(({ checkpoint }) => checkpoint.position >= head), head }
    },
    errors,
    clock,
    publishedEvents: () => find(() => true),
    eventsOfType: (type: string) => find((event) => event.type === type),
    eventsForAggregate: (type: string, id: string) => find(({ key }) => key === aggregateKey(type, id)),
    eventCount: () => log.events.length,
    hasEvent: (type: string) => log.events.some((event) => event.type === type),
    parkedKeys: () =>
      [...readers.keys()].flatMap((subscription) =>
        [...letters.parked(subscription)].map(([key, events]) => ({ subscription, key, events: [...events] })),
      ),
    clear() {
      log.clear()
      letters.clear()
      errors.length = 0
      for (const reader of readers.values()) reader.seek('head')
    },
  }
  return bus as unknown as MemoryBus<D>
}

/**
 * Which buses are delivering in this asynchronous call, innermost first. One store for all buses: Node keeps every store
 * for ever, and tests make a bus each.
 */
const deliveries = new AsyncLocalStorage<Delivery | undefined>()

interface Delivery {
  readonly bus: object
  readonly outer: Delivery | undefined
}

function isDelivering(bus: object): boolean {
  for (let one = deliveries.getStore(); one; one = one.outer) if (one.bus === bus) return true
  return false
}
