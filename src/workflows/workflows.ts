/** `ac.workflows`: registering, executing and looking at workflows, and what a process runs of them. */
import type { Delivering } from '../delivery/index.ts'
import { AftercommitError } from '../errors.ts'
import { AftercommitEvent, refuseMisspelt } from '../events/index.ts'
import type { AnyEvent, EmitSettings, StartPoint } from '../log/index.ts'
import { type CallerTransaction, type Database, recordAudit } from '../postgres/index.ts'
import type { Registry, Telemetry } from '../runtime/index.ts'
import type { SubscriptionsPart } from '../subscriptions/index.ts'
import { type CheckOptions, checkWorkflows } from './check.ts'
import type { CheckReport } from './check-report.ts'
import { effectWorks } from './effects.ts'
import { createEngine, type Engine, type InstanceState } from './engine.ts'
import { logDefinition } from './from-log.ts'
import { selectNeededAfter, selectTimers, type TimerSummary } from './inspect-statements.ts'
import { pruneInputs, pruneObservations, setPaused } from './operate-statements.ts'
import { createPostgresStore, type PostgresStoreOptions } from './postgres-store.ts'
import { liftPayload } from './replay.ts'
import type { InstanceRef, InstanceSummary } from './store.ts'
import { timerWork } from './timers.ts'
import type { EffectHandlers, EffectOf, InputOf, Outcome, Workflow } from './workflow.ts'
import { UndecodableEventError, unknownWorkflow } from './workflow-error.ts'

export interface RegisterOptions<Effect, Input> {
  /** What this process does of the effects; without it, others do them. */
  readonly effects?: EffectHandlers<Effect, Input> | undefined
  /** Where a new workflow begins to read the events of `on`; at the head unless told. */
  readonly from?: StartPoint | undefined
  /** How many instances are driven by events at once; 10 unless told. */
  readonly concurrency?: number | undefined
}

export interface ExecuteOptions {
  /** A transaction of your own: what is written is committed with it, or not. */
  readonly tx?: CallerTransaction | undefined
  /** The same input twice appends once: the second call gets the outcome of the first. Kept for 7 days. */
  readonly inputId?: string | undefined
}

export interface HistoryOptions {
  /** The first version; 1 unless told. */
  readonly from?: number | undefined
  /** At most this many; 1000 unless told. */
  readonly limit?: number | undefined
}

export interface ListWorkflowsOptions {
  /** At most this many; 100 unless told. */
  readonly limit?: number | undefined
  /** `next` of the page before. */
  readonly after?: string | undefined
}

export interface WorkflowPage {
  readonly items: readonly InstanceSummary[]
  /** For the next page; undefined on the last. */
  readonly next: string | undefined
}

export interface WorkflowAction {
  /** Who does it; for the record. */
  readonly who?: string | undefined
  readonly reason?: string | undefined
}

export interface Workflows {
  /** Known to this process from now on. After `start()` it fires timers, does effects and follows the log. */
  register<W extends Workflow, const Answer extends InputOf<W>>(
    workflow: W,
    options?: RegisterOptions<EffectOf<W>, Answer>,
  ): void
  /** Decides an input and writes everything that follows from it, or nothing. */
  execute<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, input: I, options?: ExecuteOptions): Promise<Outcome<E, R>>
  /** The same by the name of the type, for inputs that come as JSON. */
  executeDynamic(type: string, input: unknown, options?: ExecuteOptions): Promise<Outcome>
  /** Undefined when there is no such instance. */
  query<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, id: string): Promise<InstanceState<S> | undefined>
  /** As it was after that event. Undefined when there was none. */
  stateAt<S, I, E, F, R>(
    workflow: Workflow<S, I, E, F, R>,
    id: string,
    version: number,
  ): Promise<InstanceState<S> | undefined>
  /** Its events, oldest first, with their payloads as the code of today knows them. */
  history<S, I, E, F, R>(
    workflow: Workflow<S, I, E, F, R>,
    id: string,
    options?: HistoryOptions,
  ): Promise<AftercommitEvent<string, E>[]>
  /** By last event, newest first; of one workflow or of all. */
  list(workflow?: { readonly type: string }, options?: ListWorkflowsOptions): Promise<WorkflowPage>
  /** Timers that have not fired, soonest first. */
  timers(filter?: { type?: string; id?: string; limit?: number }): Promise<TimerSummary[]>
  /** No input is taken, no timer fires and no effect begins until it is resumed. False when that is so, or it is over. */
  pause(instance: InstanceRef, action?: WorkflowAction): Promise<boolean>
  resume(instance: InstanceRef, action?: WorkflowAction): Promise<boolean>
  /** Replays stored histories through the code at hand. Reads only. */
  check(options?: CheckOptions & { readonly types?: readonly string[] }): Promise<CheckReport>
  /** The types that are registered here. */
  registered(): readonly string[]
}

export interface WorkflowsPart {
  readonly workflows: Workflows
  readonly engine: Engine
  prune(): Promise<void>
  /** The log is needed from here on; null when nobody needs it. */
  neededFrom(): Promise<bigint | null>
}

export interface WorkflowsOptions extends Pick<PostgresStoreOptions, 'log'> {
  readonly database: Database
  readonly delivering: Pick<Delivering, 'register' | 'wake' | 'claiming'>
  readonly subscriptions: Pick<SubscriptionsPart, 'register'>
  readonly metrics: Registry
  readonly settings: EmitSettings
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  readonly storeStacks: boolean
  readonly onEvents: (count: number) => void
  /** Tells workers, wherever they run, that something is due. */
  readonly nudge: () => Promise<void>
}

const KEEP_INPUTS_SECONDS = 7 * 24 * 60 * 60

export function createWorkflows(options: WorkflowsOptions): WorkflowsPart {
  const { database, delivering, subscriptions, metrics, settings, log, nudge } = options
  const known = new Map<string, Workflow>()
  const inputs = metrics.counter({
    name: 'aftercommit_workflow_inputs_total',
    help: 'Inputs that workflows decided in this process, whether or not their transaction committed.',
    labels: ['type', 'outcome'],
  })
  const store = createPostgresStore({
    database,
    log,
    endsEffects: (type) => known.has(type) && known.get(type)!.effectsOnCompletion !== 'run',
    onWork: () => delivering.wake(),
    claiming: delivering.claiming,
    onSchemaTooNew: settings.onSchemaTooNew,
  })
  const engine = createEngine({
    store,
    limits: settings,
    currentTraceparent: settings.currentTraceparent,
    tracing: options.tracing,
    onOutcome: (type, outcome) => inputs.labels({ type, outcome }).inc(),
    onEvents: options.onEvents,
  })

  function named(type: string): Workflow {
    const workflow = known.get(type)
    if (!workflow) throw unknownWorkflow(type, known.keys())
    return workflow
  }

  /** The definition that was registered: another of the same type would read the same history in its own way. */
  function checked<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>): Workflow<S, I, E, F, R> {
    if ((named(workflow.type) as unknown) === workflow) return workflow
    throw new AftercommitError(
      'BAD_OPTION',
      `Another workflow of type "${workflow.type}" is registered in this process, so nothing was done. Use that one.`,
    )
  }

  /** Nobody else holds an input back: without an outcome it would have been refused. */
  async function execute<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, input: I, { tx, inputId }: ExecuteOptions) {
    return (await engine.execute(workflow, input, { tx, inputId }))!
  }

  async function changePause(instance: InstanceRef, paused: boolean, { who = 'unknown', reason }: WorkflowAction) {
    const changed = await database.transaction(
      async (tx) => {
        if (!(await setPaused(tx, instance, paused))) return false
        await recordAudit(tx, {
          who,
          what: paused ? 'workflow.pause' : 'workflow.resume',
          target: `${instance.type}/${instance.id}`,
          ...(reason === undefined ? {} : { reason }),
        })
        return true
      },
      { isolation: 'read committed' },
    )
    if (changed && !paused) await nudge()
    return changed
  }

  const workflows: Workflows = {
    register(workflow, { effects, from, concurrency } = {}) {
      const { type } = workflow
      if (known.has(type)) throw refused(type, 'is registered twice in this process')
      if (settings.definitions?.streams.includes(type)) throw refused(type, 'has the name of a declared stream')
      refuseMisspelt(`Workflow "${type}"`, Object.keys(workflow.on ?? {}), settings.definitions, [
        type,
        ...known.keys(),
      ])
      const { tracing } = options
      const parts = { engine, store, tracing, logger: database.logger, storeStacks: options.storeStacks }
      const works = effects ? effectWorks(workflow, effects as never, parts) : []
      const definition = logDefinition(workflow, { from, concurrency }, parts)
      known.set(type, workflow)
      for (const work of [timerWork(workflow, parts), ...works]) delivering.register(work)
      if (definition) subscriptions.register(definition)
    },
    execute: async (workflow, input, executeOptions = {}) => execute(checked(workflow), input, executeOptions),
    executeDynamic: async (type, input, executeOptions = {}) => execute(named(type), input, executeOptions),
    query: async (workflow, id) => engine.stateOf(checked(workflow), id),
    stateAt: async (workflow, id, version) => engine.stateOf(checked(workflow), id, version),
    async history(workflow, id, { from = 1, limit = 1_000 } = {}) {
      const instance = { type: checked(workflow).type, id }
      const events = await store.history(instance, { from, to: Number.MAX_SAFE_INTEGER, limit })
      return events.map((event) => toTyped(workflow, instance, event))
    },
    async list(workflow, { limit = 100, after } = {}) {
      checkLimit(limit)
      const before = after === undefined ? undefined : readCursor(after)
      const items = await store.list({ type: workflow?.type, limit: limit + 1, before })
      const page = items.slice(0, limit)
      return { items: page, next: items.length > limit ? String(page.at(-1)!.position) : undefined }
    },
    timers: async ({ type, id, limit = 100 } = {}) => {
      checkLimit(limit)
      return selectTimers(database, { type, id, limit })
    },
    pause: (instance, action = {}) => changePause(instance, true, action),
    resume: (instance, action = {}) => changePause(instance, false, action),
    async check({ types = [...known.keys()], ...checkOptions } = {}) {
      return checkWorkflows(types.map(named), checkOptions, { database, store })
    },
    registered: () => [...known.keys()],
  }

  return {
    workflows,
    engine,
    async prune() {
      await pruneInputs(database.control, KEEP_INPUTS_SECONDS)
      await pruneObservations(database.control)
    },
    async neededFrom() {
      const after = await selectNeededAfter(database.control)
      return after === null ? null : after + 1n
    },
  }
}

function toTyped<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  event: AnyEvent,
): AftercommitEvent<string, E> {
  const { id, type, position, aggregateType, aggregateId, version, changes, previous, tenant } = event
  const { payload, metadata, occurredAt, recordedAt } = event
  const fields = { id, type, position, aggregateType, aggregateId, version, changes, previous, tenant }
  try {
    const lifted = liftPayload(workflow, { id, type, payload, schemaVersion: metadata.schemaVersion })
    return new AftercommitEvent({ ...fields, payload: lifted, metadata, occurredAt, recordedAt })
  } catch (error) {
    throw new UndecodableEventError(instance, { type, version: version ?? 0 }, error)
  }
}

function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= 1_000) return
  throw new AftercommitError('BAD_OPTION', 'limit must be a whole number from 1 to 1000. Use `next` for the next page.')
}

function readCursor(after: string): bigint {
  if (/^\d{1,19}$/.test(after)) return BigInt(after)
  throw new AftercommitError('BAD_OPTION', '`after` must be the `next` of a page before.')
}

function refused(type: string, fault: string): AftercommitError {
  return new AftercommitError('BAD_OPTION', `Workflow "${type}" ${fault}, so it was not registered.`)
}
