/** Collects states and transitions under their names, each once, in the order in which they were met. */
import { AftercommitError } from '../errors.ts'
import type { MachineState, MachineTransition, StateMachine } from './diagram.ts'
import type { Workflow } from './workflow.ts'

export interface MachineBuilder<State> {
  /** Notes the state, and gives its name. */
  meet(state: State, place?: { readonly isInitial?: boolean }): string
  connect(transition: MachineTransition): void
  finish(source: string): StateMachine
}

export function buildMachine<State>(
  workflow: Pick<Workflow<State, never, never, never, unknown>, 'type' | 'isTerminal'>,
  nameOf: (state: State) => string | undefined = nameOfValue,
): MachineBuilder<State> {
  const states = new Map<string, { isInitial: boolean; isTerminal: boolean; fields: Set<string> }>()
  const transitions = new Map<string, MachineTransition>()
  return {
    meet(state, { isInitial = false } = {}) {
      const name = nameOf(state)
      if (name === undefined) throw namelessState(workflow.type)
      const met = states.get(name) ?? { isInitial: false, isTerminal: false, fields: new Set() }
      met.isInitial ||= isInitial
      met.isTerminal ||= workflow.isTerminal?.(state) ?? false
      for (const field of fieldsOf(state)) met.fields.add(field)
      states.set(name, met)
      return name
    },
    connect(transition) {
      const { from, to, cause, events, effects } = transition
      transitions.set(JSON.stringify([from, to, cause, events, effects]), transition)
    },
    finish: (source) => ({
      workflow: workflow.type,
      source,
      states: [...states].map(([name, met]): MachineState => ({ name, ...met, fields: [...met.fields] })),
      transitions: [...transitions.values()],
    }),
  }
}

/** What a state, an input, an event or an effect calls itself: the text it is, or its `status`, `type` or `kind`. */
export function nameOfValue(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return undefined
  const fields = ['status', 'type', 'kind'].map((field) =>
    Object.hasOwn(value, field) ? Reflect.get(value, field) : null,
  )
  return fields.find((field): field is string => typeof field === 'string')
}

function fieldsOf(state: unknown): string[] {
  return typeof state === 'object' && state !== null && !Array.isArray(state) ? Object.keys(state) : []
}

function namelessState(workflow: string): AftercommitError {
  return new AftercommitError(
    'BAD_OPTION',
    `A state of workflow "${workflow}" is no text and has no text in \`status\`, \`type\` or \`kind\`, so it could not be ` +
      'drawn. Give `nameOf: (state) => …`.',
  )
}
