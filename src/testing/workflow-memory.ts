/**
 * Workflows without a database: the words of `ac.workflows`, for tests of code that executes, with effects that run and
 * timers that fire. Deciding, replaying and retrying is done by the code that runs in production; only what keeps it is
 * another. Nothing runs by itself: `drain` does what is due, `advance` lets time pass.
 */
import type { DeadLetters } from '../dead-letters/index.ts'
import { AftercommitError } from '../errors.ts'
import { AftercommitEvent } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { CallerTransaction } from '../postgres/index.ts'
import { createTestClock, type Duration, silentLogger, type TestClock, toMs } from '../runtime/index.ts'
import {
  createEngine,
  type ExecuteOptions,
  effectWorks,
  liftPayload,
  timerWork,
  unknownWorkflow,
  type Workflow,
  type Workflows,
} from '../workflows/index.ts'
import type { MemoryBus } from './memory-bus.ts'
import { createMemoryDeadLetters, LetterStore } from './memory-dead-letters.ts'
import { MemoryStore } from './workflow-store.ts'
import { MemoryWork } from './workflow-work.ts'

export interface MemoryWorkflowsOptions {
  readonly clock?: TestClock | undefined
  /** Whose events are the inputs of workflows that have `on`. */
  readonly bus?: MemoryBus | undefined
}

export interface MemoryWorkflows extends Omit<Workflows, 'check'> {
  /** What is executed with this transaction is one: all of it, or nothing. */
  transaction<T>(fn: (tx: CallerTransaction) => Promise<T>): Promise<T>
  /** Does everything that is due, and what follows from it. */
  drain(): Promise<void>
  /** Lets time pass: effects, retries and timers that come due on the way are done at their time. */
  advance(duration: Duration): Promise<void>
  readonly deadLetters: DeadLetters
  readonly clock: TestClock
}

const LIMITS = { maxPayloadBytes: 1024 ** 2, maxNesting: 64, maxDepth: 32 }

export function memoryWorkflows({ clock = createTestClock(), bus }: MemoryWorkflowsOptions = {}): MemoryWorkflows {
  const letters = new LetterStore(clock)
  const work = new MemoryWork(clock, letters)
  const store = new MemoryStore(clock, work, letters)
  const engine = createEngine({ store, limits: LIMITS })
  const known = new Map<string, Workflow>()

  function named(type: string): Workflow {
    const workflow = known.get(type)
    if (!workflow) throw unknownWorkflow(type, known.keys())
    return workflow
  }

  function checked<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>): Workflow<S, I, E, F, R> {
    if ((named(workflow.type) as unknown) === workflow) return workflow
    throw refused(workflow.type, 'is registered with another definition; use that one. Nothing was done')
  }

  function register(workflow: Workflow, { effects = {} }: { readonly effects?: object | undefined }) {
    if (known.has(workflow.type)) throw refused(workflow.type, 'is registered twice, so the second was refused')
    known.set(workflow.type, workflow)
    const parts = { engine, store, logger: silentLogger, storeStacks: false }
    for (const one of [timerWork(workflow, parts), ...effectWorks(workflow, effects as never, parts)])
      work.register(one)
    if (bus) follow(bus, workflow)
  }

  /** Events of the bus are inputs, each once by its id. */
  function follow(source: MemoryBus, workflow: Workflow): void {
    const { type, on = {} } = workflow
    if (Object.keys(on).length === 0) return
    source.subscribe({
      id: `workflow:${type}`,
      on: Object.keys(on),
      async handle(event) {
        const input = on[event.type]!(event)
        if (input !== undefined) await engine.execute(workflow, input, { inputId: event.id, hold: 'in order' })
      },
    })
  }

  /** Nobody else holds an input back: without an outcome it would have been refused. */
  async function execute<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, input: I, { tx, inputId }: ExecuteOptions) {
    return (await engine.execute(workflow, input, { tx, inputId }))!
  }

  async function drain(): Promise<void> {
    for (let runs = 0; await work.runNext((fn) => store.transaction(fn)); runs++) {
      if (runs === MOST_RUNS) throw endless()
    }
  }

  return {
    register: (workflow, options = {}) => register(workflow as unknown as Workflow, options),
    execute: async (workflow, input, options = {}) => execute(checked(workflow), input, options),
    executeDynamic: async (type, input, options = {}) => execute(named(type), input, options),
    query: async (workflow, id) => engine.stateOf(checked(workflow), id),
    stateAt: async (workflow, id, version) => engine.stateOf(checked(workflow), id, version),
    async history(workflow, id, { from = 1, limit = 1_000 } = {}) {
      const instance = { type: checked(workflow).type, id }
      const events = await store.history(instance, { from, to: Number.MAX_SAFE_INTEGER, limit })
      return events.map((event) => toTyped(workflow, event))
    },
    async list(workflow, { limit = 100, after } = {}) {
      const before = after === undefined ? undefined : BigInt(after)
      const items = await store.list({ type: workflow?.type, limit: limit + 1, before })
      const page = items.slice(0, limit)
      return { items: page, next: items.length > limit ? String(page.at(-1)!.position) : undefined }
    },
    timers: async (filter = {}) => work.timers(filter),
    pause: (instance) => store.setPaused(instance, true),
    resume: (instance) => store.setPaused(instance, false),
    registered: () => [...known.keys()],
    transaction: (fn) => store.transaction((tx) => fn(tx as unknown as CallerTransaction)),
    drain,
    async advance(duration) {
      const untilMs = clock.now().getTime() + toMs(duration, 'advance')
      for (;;) {
        await drain()
        const waitMs = Math.min(work.nextDueMs ?? untilMs, untilMs) - clock.now().getTime()
        if (waitMs <= 0) return
        await clock.advance(waitMs)
      }
    },
    deadLetters: createMemoryDeadLetters(letters, async () => work.placeMarked()),
    clock,
  }
}

/** A timer that arms itself for now would otherwise never end. */
const MOST_RUNS = 10_000

function toTyped<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, event: AnyEvent): AftercommitEvent<string, E> {
  const { id, type, position, aggregateType, aggregateId, version, tenant, metadata, occurredAt, recordedAt } = event
  const payload = liftPayload(workflow, { id, type, payload: event.payload, schemaVersion: metadata.schemaVersion })
  const plain = { id, type, position, aggregateType, aggregateId, version, tenant, metadata, occurredAt, recordedAt }
  return new AftercommitEvent({ ...plain, payload, changes: null, previous: null })
}

function refused(type: string, fault: string): AftercommitError {
  return new AftercommitError('BAD_OPTION', `Workflow "${type}" ${fault}.`)
}

function endless(): AftercommitError {
  return new AftercommitError(
    'BAD_STATE',
    `Effects and timers were run ${MOST_RUNS} times and another one is due now, so \`drain\` was given up. ` +
      'A timer probably arms itself for the same moment again.',
  )
}
