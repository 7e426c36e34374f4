/** Checks a workflow once, before anything runs: every mistake in it is one of the program. */
import { AftercommitError } from '../errors.ts'
import { isEventName } from '../events/index.ts'
import { withCheckedAnswers } from './check-answers.ts'
import { CHECKED, type Workflow, type WorkflowOptions } from './workflow.ts'

/**
 * @example
 * const counter = defineWorkflow({
 *   type: 'counter',
 *   id: (input: { id: string }) => input.id,
 *   initial: () => ({ count: 0 }),
 *   evolve: (state, _event: { type: 'counted' }) => ({ count: state.count + 1 }),
 *   decide: (state) => (state.count < 3 ? accept([{ type: 'counted' }]) : reject('enough')),
 *   isTerminal: ({ count }) => count === 3,
 * })
 */
export function defineWorkflow<State, Input, Event, Effect = never, Rejection = never>(
  options: WorkflowOptions<State, Input, Event, Effect, Rejection>,
): Workflow<State, Input, Event, Effect, Rejection> {
  const faults = [...typeFaults(options.type), ...functionFaults(options), ...settingFaults(options)]
  if (faults.length > 0) {
    throw new AftercommitError(
      'BAD_DEFINITION',
      `Workflow ${JSON.stringify(options.type)} cannot be used:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    )
  }
  return { ...withCheckedAnswers(options), [CHECKED]: true }
}

const MAX_TYPE_LENGTH = 100

function typeFaults(type: unknown): string[] {
  if (typeof type !== 'string' || !isEventName(type) || type.length > MAX_TYPE_LENGTH) {
    return [`its type must be lower-case words joined by dots, at most ${MAX_TYPE_LENGTH} characters.`]
  }
  return /^(aftercommit|auth)(\.|$)/.test(type) ? ['types that begin with "aftercommit" or "auth" are reserved.'] : []
}

function functionFaults(options: object): string[] {
  const of = (name: string) => Reflect.get(options, name) as unknown
  const needed = ['id', 'initial', 'evolve', 'decide'].filter((name) => typeof of(name) !== 'function')
  const wrong = ['isTerminal', 'uniqueKey', 'onDeadLetter', 'destination'].filter(
    (name) => of(name) !== undefined && typeof of(name) !== 'function',
  )
  return [...needed, ...wrong].map((name) => `\`${name}\` must be a function.`)
}

function settingFaults<S, I, E, F, R>(options: WorkflowOptions<S, I, E, F, R>): string[] {
  const { snapshots = {}, on = {}, events = {} } = options
  const faults: string[] = []
  if (options.uniqueKey && !options.isTerminal) {
    faults.push('`uniqueKey` needs `isTerminal`: without an end nobody else could ever have the key.')
  }
  if (!isCount(snapshots.every ?? 100, 0)) faults.push('`snapshots.every` must be a whole number from 0 up.')
  if (snapshots.keep !== 'all' && !isCount(snapshots.keep ?? 1, 1))
    faults.push("`snapshots.keep` must be a whole number from 1 up, or 'all'.")
  if (!isCount(snapshots.version ?? 1, 1)) faults.push('`snapshots.version` must be a whole number from 1 up.')
  for (const [name, toInput] of Object.entries(on)) {
    if (!isEventName(name)) faults.push(`\`on\` has "${name}", which is not the name of an event.`)
    if (typeof toInput !== 'function') faults.push(`\`on\` has no function for "${name}".`)
  }
  for (const [name, { version, upcast }] of Object.entries(events)) {
    if (!isCount(version, 1)) faults.push(`the version of event "${name}" must be a whole number from 1 up.`)
    for (let from = 1; from < Math.min(version, 1_000); from++) {
      if (typeof upcast[from] !== 'function')
        faults.push(`event "${name}" has no upcast step ${from}: older ones could not be read.`)
    }
  }
  return faults
}

function isCount(value: number, least: number): boolean {
  return Number.isSafeInteger(value) && value >= least
}
