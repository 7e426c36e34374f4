/**
 * A workflow as a drawing. A decider is code, and nobody can read all transitions out of code: a machine is either
 * explored (diagram-explore.ts, what the examples given reach) or retraced (diagram-retrace.ts, what has happened), and a drawing says
 * in its first line which of the two it is.
 */

export interface StateMachine {
  readonly workflow: string
  /** Where it comes from and what it leaves out, in a sentence. */
  readonly source: string
  readonly states: readonly MachineState[]
  readonly transitions: readonly MachineTransition[]
}

export interface MachineState {
  readonly name: string
  readonly isInitial: boolean
  readonly isTerminal: boolean
  /** Fields that some state of this name has. */
  readonly fields: readonly string[]
}

export interface MachineTransition {
  readonly from: string
  readonly to: string
  /** The input, `remind (timer)`, `paid (charge)` for what an effect answered; null where only events are known. */
  readonly cause: string | null
  readonly events: readonly string[]
  readonly effects: readonly string[]
}

/** For Markdown on GitHub and elsewhere: a `stateDiagram-v2`. */
export function toMermaid(machine: StateMachine): string {
  const ids = idsOf(machine)
  const id = (name: string) => ids.get(name)!
  return [
    'stateDiagram-v2',
    `  %% ${oneLine(machine.workflow)}: ${oneLine(machine.source)}`,
    ...machine.states.map(({ name }) => `  state "${escapeMermaid(name)}" as ${id(name)}`),
    ...machine.states.filter(({ isInitial }) => isInitial).map(({ name }) => `  [*] --> ${id(name)}`),
    ...machine.transitions.map((one) => `  ${id(one.from)} --> ${id(one.to)} : ${escapeMermaid(labelOf(one))}`),
    ...machine.states.filter(({ isTerminal }) => isTerminal).map(({ name }) => `  ${id(name)} --> [*]`),
    '',
  ].join('\n')
}

/** For Graphviz. */
export function toDot(machine: StateMachine): string {
  const ids = idsOf(machine)
  const id = (name: string) => ids.get(name)!
  return [
    `// ${oneLine(machine.workflow)}: ${oneLine(machine.source)}`,
    `digraph ${quoteDot(machine.workflow)} {`,
    '  rankdir=LR',
    '  node [shape=box, style=rounded]',
    '  begin [shape=point, label=""]',
    ...machine.states.map(
      ({ name, isTerminal }) => `  ${id(name)} [label=${quoteDot(name)}${isTerminal ? ', peripheries=2' : ''}]`,
    ),
    ...machine.states.filter(({ isInitial }) => isInitial).map(({ name }) => `  begin -> ${id(name)}`),
    ...machine.transitions.map((one) => `  ${id(one.from)} -> ${id(one.to)} [label=${quoteDot(labelOf(one))}]`),
    '}',
    '',
  ].join('\n')
}

/** `pay / paid → ship`: what came, what happened, what was asked of the world. */
function labelOf({ cause, events, effects }: MachineTransition): string {
  const happened = cause === null ? events.join(', ') : `${cause} / ${events.join(', ')}`
  return effects.length === 0 ? happened : `${happened} → ${effects.join(', ')}`
}

/** Names are anybody's words; what the drawing languages see is a letter and a number. */
function idsOf({ states }: StateMachine): Map<string, string> {
  return new Map(states.map(({ name }, index) => [name, `s${index + 1}`]))
}

/** Mermaid gives a meaning to punctuation nearly everywhere; it takes any character by its number. */
function escapeMermaid(text: string): string {
  return oneLine(text).replace(/[^\p{L}\p{M}\p{N} _.,/()→-]/gu, (character) => `#${character.codePointAt(0)};`)
}

function quoteDot(text: string): string {
  return `"${oneLine(text).replace(/[\\"]/g, '\\$&')}"`
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
}
