/** One input through one instance, whatever keeps it: find the state, decide, write, tell. */
import { isTransaction } from '../postgres/index.ts'
import { currentCause, messagingAttributes, type Telemetry } from '../runtime/index.ts'
import { type Chain, chainOf } from './chain.ts'
import { decideStep, type EventLimits } from './decide-step.ts'
import { checkInputId, checkInstanceId } from './names.ts'
import { liftPayload, replayFound } from './replay.ts'
import { type KnownState, StateCache } from './state-cache.ts'
import type { Found, InstanceRef, NewTimer, StepRequest, StepWrite, WorkflowStore } from './store.ts'
import { type Taken, toAccepted, toCompleted, toRejected, toWaiting } from './to-write.ts'
import type { Outcome, Workflow } from './workflow.ts'
import { UndecodableEventError, UniqueKeyTakenError, WorkflowPausedError } from './workflow-error.ts'

export interface EngineOptions {
  readonly store: WorkflowStore
  readonly limits: EventLimits & { readonly maxDepth: number }
  readonly currentTraceparent?: (() => string | undefined) | undefined
  /** Undefined where nothing is traced. */
  readonly tracing?: Telemetry | undefined
  /** Told of every input that was decided, committed or not. */
  readonly onOutcome?: ((type: string, outcome: Outcome['outcome']) => void) | undefined
  /** Told how many events were written. */
  readonly onEvents?: ((count: number) => void) | undefined
}

export interface ExecuteRequest {
  readonly inputId?: string | undefined
  /** Of the event of the log that brings the input. */
  readonly inputPosition?: bigint | undefined
  /** A transaction of the caller's own. */
  readonly tx?: unknown
  /** Done in the same transaction, under the lock of the instance. */
  readonly alongside?: StepRequest['alongside']
  readonly delivery?: StepRequest['delivery']
  readonly notBefore?: number | undefined
  /** Told of an error that a statement of the step met, before it is thrown; not of what a function of the workflow threw. */
  readonly onFault?: ((error: unknown) => void) | undefined
  /** What leads to it; the call under way unless told. */
  readonly chain?: Chain | undefined
  /**
   * Where the instance is paused, the input waits, as this timer when told; else it is refused. `in order`: behind those
   * that wait already, also when the instance was resumed.
   */
  readonly hold?: true | 'in order' | NewTimer | undefined
}

/** What is known of an instance. */
export interface InstanceState<State> {
  readonly state: State
  readonly version: number
  readonly completed: boolean
}

export interface Engine {
  /** Undefined: the input waits, because the instance is paused or was. */
  execute<S, I, E, F, R>(
    workflow: Workflow<S, I, E, F, R>,
    input: I,
    request: ExecuteRequest,
  ): Promise<Outcome<E, R> | undefined>
  /** Undefined when there is no such instance, or none of that version. */
  stateOf<S, I, E, F, R>(
    workflow: Workflow<S, I, E, F, R>,
    id: string,
    upTo?: number,
  ): Promise<InstanceState<S> | undefined>
}

const MOST_STATES = 10_000

export function createEngine(options: EngineOptions): Engine {
  const { store, limits, currentTraceparent, tracing, onOutcome, onEvents } = options
  const states = new StateCache(MOST_STATES)

  const engine: Engine = {
    async execute<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, input: I, request: ExecuteRequest) {
      const taken = take(workflow, input, request)
      const { instance } = taken
      let known: KnownState<S> | undefined
      let reached: Reached<S, E, R> | undefined
      let thrown: { readonly error: unknown } | undefined
      const toWrite = (found: Found) => {
        try {
          reached = decide(workflow, taken, found, found.followsKnown ? known : undefined, request.hold)
          // A step that is decided again goes on from here, and so does the store.
          if (reached.seen) known = reached.seen
        } catch (error) {
          thrown = { error }
          throw error
        }
        return reached.write
      }
      const step = store.step(
        {
          instance,
          known() {
            known = states.get(instance) as KnownState<S> | undefined
            return known
          },
          notBefore: request.notBefore,
          snapshotVersion: workflow.snapshots?.version ?? 1,
          inputId: request.inputId,
          tx: request.tx,
          alongside: request.alongside,
          delivery: request.delivery,
        },
        toWrite,
      )
      const written = await step.catch((error) => {
        if (thrown?.error !== error) request.onFault?.(error)
        throw error
      })
      const { outcome, next, uniqueKey } = reached!
      if (written?.takenBy !== undefined) throw new UniqueKeyTakenError(instance, uniqueKey!, written.takenBy)
      if (next) {
        const position = written && written.position > 0n ? written.position : next.position
        remember(request.tx, instance, { ...next, position })
      }
      if (outcome === undefined) return undefined
      onOutcome?.(workflow.type, outcome.outcome)
      if (outcome.outcome === 'accepted' && reached!.write) onEvents?.(outcome.events.length)
      return outcome
    },

    async stateOf<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, id: string, upTo?: number) {
      const instance = { type: workflow.type, id }
      const found = await store.load(instance, { snapshotVersion: workflow.snapshots?.version ?? 1, upTo })
      if (!found || (upTo !== undefined && (upTo > found.version || upTo < 1))) return undefined
      const { state, version } = replayFound(workflow, instance, undefined, found)
      const completed = upTo === undefined ? found.completed : (workflow.isTerminal?.(state) ?? false)
      return { state, version, completed }
    },
  }
  return tracing === undefined ? engine : traced(engine, tracing)

  function take<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, input: I, request: ExecuteRequest): Taken<I> {
    const id = workflow.id(input)
    checkInstanceId(workflow.type, id)
    const { inputId, inputPosition, chain = chainOf(currentCause(), currentTraceparent?.()) } = request
    if (inputId !== undefined) checkInputId(inputId)
    return { instance: { type: workflow.type, id }, input, inputId, inputPosition, chain }
  }

  function decide<S, I, E, F, R>(
    workflow: Workflow<S, I, E, F, R>,
    taken: Taken<I>,
    found: Found,
    known: KnownState<S> | undefined,
    hold: ExecuteRequest['hold'],
  ): Reached<S, E, R> {
    if (found.recorded) return { outcome: toOutcome(workflow, taken.instance, found), write: undefined }
    if (found.completed) return { outcome: { outcome: 'completed' }, write: toCompleted(workflow, taken, found) }
    const isBehind = found.holds && hold === 'in order'
    if (hold && (found.paused || isBehind)) return { outcome: undefined, write: toWaiting(taken, found, hold) }
    if (found.paused) throw new WorkflowPausedError(taken.instance)
    const { state } = replayFound(workflow, taken.instance, known, found)
    const { version, position, generation, uniqueKey } = found
    const seen = { state, version, position, generation, uniqueKey, isOver: false, atMs: found.now.getTime() }
    const step = decideStep(workflow, taken.instance, state, taken.input, found.now, limits)
    if (step.outcome === 'rejected') {
      const next = version === 0 ? undefined : seen
      return { outcome: step, write: toRejected(workflow, taken, found, step.reason), next, seen }
    }
    const events = step.events.map(({ event }) => event)
    return {
      outcome: { outcome: 'accepted', events },
      write: toAccepted(workflow, taken, found, step, limits.maxDepth),
      next: {
        ...seen,
        state: step.state,
        version: version + events.length,
        generation: generation + (step.continuesAfter === undefined ? 0 : 1),
        uniqueKey: step.uniqueKey ?? uniqueKey,
        isOver: step.completed,
      },
      uniqueKey: step.uniqueKey,
      seen,
    }
  }

  /** What is not committed yet may never be. */
  function remember(tx: unknown, instance: InstanceRef, next: KnownState): void {
    if (tx === undefined) states.put(instance, next)
    else if (isTransaction(tx)) tx.onCommit(() => states.put(instance, next))
  }
}

interface Reached<S, E, R> {
  /** Undefined: it waits. */
  readonly outcome: Outcome<E, R> | undefined
  readonly write: StepWrite | undefined
  readonly next?: KnownState<S> | undefined
  readonly uniqueKey?: string | undefined
  /** The instance as the input met it. */
  readonly seen?: KnownState<S> | undefined
}

/** What became of the input when it came for the first time. */
function toOutcome<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  instance: InstanceRef,
  { recorded, events }: Found,
): Outcome<E, R> {
  if (recorded!.outcome === 'rejected') return { outcome: 'rejected', reason: recorded!.reason as R }
  const lift = (event: Found['events'][number]) => {
    try {
      return liftPayload(workflow, event)
    } catch (error) {
      throw new UndecodableEventError(instance, event, error)
    }
  }
  return { outcome: 'accepted', events: events.map(lift) }
}

/** A span around each step; a link leads to whatever brought its input, such as an effect of days ago. */
function traced(engine: Engine, tracing: Telemetry): Engine {
  return {
    ...engine,
    execute(workflow, input, request) {
      const { type } = workflow
      const brought = request.chain?.traceparent
      const attributes = messagingAttributes('execute', [{ type, id: request.inputId }])
      const run = () => engine.execute(workflow, input, request)
      return tracing.span(`execute ${type}`, attributes, brought === undefined ? [] : [brought], run)
    },
  }
}
