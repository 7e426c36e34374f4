/**
 * Draws a workflow by trying: from the initial state, every example input is put into every state that is reached, timers
 * fire when they are next, and effects answer as told. What the examples do not reach is not drawn.
 */
import { inspect } from 'node:util'
import { type AcceptedStep, decideStep } from './decide-step.ts'
import type { StateMachine } from './diagram.ts'
import { buildMachine, nameOfValue } from './diagram-machine.ts'
import { deepFreeze } from './freeze.ts'
import { firstTimer, NOTHING_PENDING, type Pending, pendingAfter, without } from './pending.ts'
import type { Workflow } from './workflow.ts'

export interface ExploreOptions<State, Input, Effect> {
  /** Tried in every state. All for one instance. */
  readonly inputs: readonly Input[]
  /** What an effect may answer; each answer is tried. */
  readonly answers?: Answers<Input, Effect> | undefined
  /** The state a state belongs to: its `status`, `type` or `kind` unless told. */
  readonly nameOf?: ((state: State) => string) | undefined
  /** When it begins. */
  readonly now?: Date | undefined
  /** Where it gives up: a state that counts has no end. 1,000 unless told. */
  readonly maxStates?: number | undefined
}

type Answers<Input, Effect> = (effect: Effect) => readonly Input[]

/** @example toMermaid(exploreWorkflow(approval, { inputs: [request, approve, refuse] })) */
export function exploreWorkflow<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  { inputs, answers, nameOf, now = new Date('2026-01-01T00:00:00Z'), maxStates = 1_000 }: ExploreOptions<S, I, F>,
): StateMachine {
  const machine = buildMachine<S>(workflow, nameOf)
  const begin: Node<S, I, F> = { state: deepFreeze(workflow.initial()), pending: NOTHING_PENDING, nowMs: now.getTime() }
  machine.meet(begin.state, { isInitial: true })
  const seen = new Set([textOf(begin)])
  const queue = [begin]
  for (let node = queue.shift(); node; node = queue.shift()) {
    for (const trial of trialsOf(node, inputs, answers)) {
      const step = decideStep(
        workflow,
        instanceOf(workflow, trial.input),
        node.state,
        trial.input,
        new Date(trial.nowMs),
      )
      if (step.outcome === 'rejected') continue
      const pending = withAnswers(pendingAfter(workflow, trial.left, step), answers)
      const next = { state: step.state, pending, nowMs: trial.nowMs }
      machine.connect(toTransition(machine.meet(node.state), machine.meet(step.state), trial.cause, step))
      if (step.completed || seen.size >= maxStates || seen.has(textOf(next))) continue
      seen.add(textOf(next))
      queue.push(next)
    }
  }
  return machine.finish(sourceOf(inputs.length, seen.size, maxStates))
}

interface Node<S, I, F> {
  readonly state: S
  readonly pending: Pending<I, F>
  readonly nowMs: number
}

/** One input to try, and what is still pending when it has come. */
interface Trial<I, F> {
  readonly input: I
  readonly cause: string
  readonly nowMs: number
  readonly left: Pending<I, F>
}

function trialsOf<S, I, F>(
  { pending, nowMs }: Node<S, I, F>,
  inputs: readonly I[],
  answers: Answers<I, F> = () => [],
): Trial<I, F>[] {
  const { timers, effects } = pending
  const timer = firstTimer(timers)
  return [
    ...inputs.map((input) => ({ input, cause: nameOfInput(input), nowMs, left: pending })),
    ...effects.flatMap((effect) =>
      answers(effect).map((input) => ({
        input,
        cause: `${nameOfInput(input)} (${nameOfValue(effect) ?? 'effect'})`,
        nowMs,
        left: { timers, effects: without(effects, effect) },
      })),
    ),
    ...(timer === undefined ? [] : [timer]).map(({ input, dueMs }) => ({
      input,
      cause: `${nameOfInput(input)} (timer)`,
      nowMs: Math.max(nowMs, dueMs),
      left: { timers: without(timers, timer!), effects },
    })),
  ]
}

/** An effect that never answers leads nowhere: kept, it would only make equal states look different. */
function withAnswers<I, F>({ timers, effects }: Pending<I, F>, answers: Answers<I, F> = () => []): Pending<I, F> {
  return { timers, effects: effects.filter((effect) => answers(effect).length > 0) }
}

function toTransition<S, I, E, F>(from: string, to: string, cause: string, step: AcceptedStep<S, I, E, F>) {
  const events = step.events.map(({ event }) => nameOfValue(event) ?? 'event')
  return { from, to, cause, events, effects: step.effects.map((effect) => nameOfValue(effect) ?? 'effect') }
}

function nameOfInput(input: unknown): string {
  return nameOfValue(input) ?? 'input'
}

function instanceOf<S, I, E, F, R>(workflow: Workflow<S, I, E, F, R>, input: I) {
  return { type: workflow.type, id: workflow.id(input) }
}

/** Two nodes are one when everything that can be seen of them is: also what waits. Times of timers are not looked at. */
function textOf<S, I, F>({ state, pending: { timers, effects } }: Node<S, I, F>): string {
  const waiting = timers.map(({ input, key }) => ({ input, key }))
  return inspect([state, waiting, effects], { depth: null, sorted: true, maxArrayLength: null, maxStringLength: null })
}

function sourceOf(inputs: number, reached: number, maxStates: number): string {
  const drawn = `explored with ${inputs} example input${inputs === 1 ? '' : 's'}; what they do not reach is not drawn`
  return reached < maxStates ? drawn : `${drawn}, and it was given up after ${maxStates} states`
}
