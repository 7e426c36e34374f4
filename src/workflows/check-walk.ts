/**
 * From a state to the last event of an instance, looking at everything on the way: is each event read, is each snapshot
 * what the replay gives, would each recorded input be decided the same way, does the last state agree about the end.
 */
import type { AnyEvent } from '../log/index.ts'
import { createDecisions, type DecisionsOptions, toJsonValue } from './check-decisions.ts'
import { differingPaths } from './check-paths.ts'
import { type CheckFinding, nameOfError, type Place, toFinding } from './check-report.ts'
import type { StoredSnapshot } from './check-statements.ts'
import { deepFreeze } from './freeze.ts'
import { liftPayload } from './replay.ts'
import { UndecodableEventError } from './workflow-error.ts'

export interface WalkOptions extends DecisionsOptions {
  readonly instance: DecisionsOptions['instance'] & { readonly completed: boolean }
  /** Where it begins. */
  readonly from: Place & { readonly state: unknown }
  readonly snapshots: readonly StoredSnapshot[]
}

export interface Walk {
  /** False: this event cannot be read, so the walk is over. */
  apply(event: AnyEvent): boolean
  /** There are no more events. */
  end(): void
  readonly findings: readonly CheckFinding[]
  readonly count: { readonly events: number; readonly snapshots: number; readonly decisions: number }
}

export function createWalk(options: WalkOptions): Walk {
  const { workflow, instance, from, snapshots, values } = options
  const findings: CheckFinding[] = []
  const count = { events: 0, snapshots: 0, decisions: 0 }
  const decisions = createDecisions(options)
  const snapshotAt = new Map(snapshots.map((snapshot) => [snapshot.version, snapshot]))
  let { state } = from
  let place: Place = from

  function find(about: CheckFinding['about'], message: string, paths: CheckFinding['paths'] = []): void {
    findings.push(toFinding(instance, place, about, message, { paths }))
  }

  function decideAgain(): void {
    const decided = decisions.decideAt(place, state)
    count.decisions += decided.count
    for (const finding of decided.findings) findings.push(finding)
  }

  /** What this code reads from it is to be what it would write here. */
  function compareSnapshot({ state: stored, stateVersion }: StoredSnapshot): void {
    const { version: known = 1, encode, decode } = workflow.snapshots ?? {}
    if (stateVersion !== known) return
    count.snapshots++
    const written = (reached: unknown) => toJsonValue(encode ? encode(reached) : reached)
    try {
      const paths = differingPaths('state', decode ? written(decode(stored)) : stored, written(state), { values })
      if (paths.length > 0) find('snapshot', UNLIKE_REPLAY, paths)
    } catch (error) {
      find('snapshot', `\`snapshots.encode\` or \`decode\` fails on this snapshot (${nameOfError(error)}).`)
    }
  }

  return {
    findings,
    count,
    apply(event) {
      decideAgain()
      const { id, type, payload, metadata, position } = event
      const version = event.version!
      place = { version, position }
      count.events++
      try {
        const lifted = liftPayload(workflow, { id, type, payload, schemaVersion: metadata.schemaVersion })
        findings.push(...decisions.compare({ type, position, payload: lifted }))
        state = deepFreeze(workflow.evolve(state, lifted))
      } catch (error) {
        find(
          'event',
          `${new UndecodableEventError(instance, { type, version }, error).message} (${nameOfError(error)})`,
        )
        return false
      }
      const snapshot = snapshotAt.get(version)
      if (snapshot?.state !== undefined) compareSnapshot(snapshot)
      else if (snapshot) state = deepFreeze(workflow.initial())
      return true
    },
    end() {
      decideAgain()
      try {
        const isTerminal = workflow.isTerminal?.(state) ?? false
        if (isTerminal === instance.completed) return
        const is = instance.completed ? 'completed' : 'not completed'
        find('end', `The instance is ${is}, but \`isTerminal\` says ${isTerminal} of its last state.`)
      } catch (error) {
        find('end', `\`isTerminal\` fails on its last state (${nameOfError(error)}).`)
      }
    },
  }
}

const UNLIKE_REPLAY =
  'The snapshot is not what a replay of the events gives. Raise `snapshots.version`; where `log.retention` may have removed ' +
  'the events before it, let `snapshots.decode` mend it instead.'
