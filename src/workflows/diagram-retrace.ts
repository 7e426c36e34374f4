/** Draws what has happened: the states that stored histories went through. What never happened is not drawn. */
import type { StateMachine } from './diagram.ts'
import { buildMachine, nameOfValue } from './diagram-machine.ts'
import { deepFreeze } from './freeze.ts'
import type { Workflow } from './workflow.ts'

export interface RetraceOptions<State> {
  /** The state a state belongs to: its `status`, `type` or `kind` unless told. */
  readonly nameOf?: ((state: State) => string) | undefined
}

/** One list of events for each life of an instance, oldest first. Inputs are not part of a history, so causes are not drawn. */
export function retraceWorkflow<S, I, E, F, R>(
  workflow: Workflow<S, I, E, F, R>,
  histories: readonly (readonly E[])[],
  { nameOf }: RetraceOptions<S> = {},
): StateMachine {
  const machine = buildMachine<S>(workflow, nameOf)
  for (const events of histories) {
    let state = deepFreeze(workflow.initial())
    let from = machine.meet(state, { isInitial: true })
    for (const event of events) {
      state = deepFreeze(workflow.evolve(state, event))
      const to = machine.meet(state)
      machine.connect({ from, to, cause: null, events: [nameOfValue(event) ?? 'event'], effects: [] })
      from = to
    }
  }
  const count = histories.length
  return machine.finish(
    `retraced from ${count} stored histor${count === 1 ? 'y' : 'ies'}; what never happened is not drawn`,
  )
}
