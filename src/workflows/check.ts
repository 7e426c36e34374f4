/**
 * Replays what is stored through the code at hand: can every event be read, does the state say the same about the end as
 * the instance does, are snapshots what a replay gives, and would inputs that were recorded be decided the same way.
 * Reads only; says how much of each it looked at.
 */
import { isDeepStrictEqual } from 'node:util'
import { parseJson, stringifyJson } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { Database } from '../postgres/index.ts'
import { type StoredObservation, type StoredSnapshot, selectObservations, selectSnapshots } from './check-statements.ts'
import { decideStep } from './decide-step.ts'
import { deepFreeze } from './freeze.ts'
import { selectInstancesAfter } from './inspect-statements.ts'
import { liftPayload } from './replay.ts'
import type { InstanceSummary, WorkflowStore } from './store.ts'
import type { Workflow } from './workflow.ts'
import { historyLost, UndecodableEventError } from './workflow-error.ts'

export interface CheckOptions {
  /** At most so many instances of each type, in the order of their ids; all unless told. */
  readonly limit?: number | undefined
  readonly onProgress?: ((checked: number) => void) | undefined
}

export interface CheckFinding {
  readonly type: string
  readonly id: string
  readonly version: number
  readonly about: 'event' | 'end' | 'snapshot' | 'decision'
  readonly message: string
}

export interface CheckReport {
  readonly types: readonly CheckedType[]
  readonly findings: readonly CheckFinding[]
}

/** How much of each was looked at. */
export interface CheckedType {
  readonly type: string
  readonly instances: number
  readonly events: number
  readonly snapshots: number
  /** Decisions about recorded inputs that were made again. */
  readonly decisions: number
  /** Recorded inputs that were redacted, so that they say nothing. */
  readonly redacted: number
}

export interface CheckParts {
  readonly database: Database
  readonly store: WorkflowStore
}

const PAGE = 100
/** More findings than anybody reads. */
const MOST_FINDINGS = 1_000

export async function checkWorkflows(
  workflows: readonly Workflow[],
  { limit = Number.POSITIVE_INFINITY, onProgress }: CheckOptions,
  parts: CheckParts,
): Promise<CheckReport> {
  const findings: CheckFinding[] = []
  const types: CheckedType[] = []
  let checked = 0
  for (const workflow of workflows) {
    const count = { type: workflow.type, instances: 0, events: 0, snapshots: 0, decisions: 0, redacted: 0 }
    for (let after: string | undefined; count.instances < limit; ) {
      const page = await selectInstancesAfter(
        parts.database,
        workflow.type,
        after,
        Math.min(PAGE, limit - count.instances),
      )
      for (const instance of page) {
        const found = await checkInstance(workflow, instance, parts)
        count.instances++
        count.events += found.events
        count.snapshots += found.snapshots
        count.decisions += found.decisions
        count.redacted += found.redacted
        if (findings.length < MOST_FINDINGS) findings.push(...found.findings)
        onProgress?.(++checked)
      }
      if (page.length < PAGE) break
      after = page.at(-1)!.id
    }
    types.push(count)
  }
  return { types, findings }
}

interface CheckedInstance extends Omit<CheckedType, 'type' | 'instances'> {
  readonly findings: readonly CheckFinding[]
}

async function checkInstance(
  workflow: Workflow,
  instance: InstanceSummary,
  { database, store }: CheckParts,
): Promise<CheckedInstance> {
  const [snapshots, observations] = await Promise.all([
    selectSnapshots(database, instance),
    selectObservations(database, instance),
  ])
  const walk = createWalk(workflow, instance, snapshots, observations)
  try {
    for (let from = 1; from <= instance.version; from += PAGE) {
      const to = Math.min(from + PAGE - 1, instance.version)
      const events = await store.history(instance, { from, to, limit: PAGE })
      for (let version = from; version <= to; version++) {
        const event = events[version - from]
        if (event?.version !== version) throw historyLost(instance, version)
        walk.apply(event)
      }
    }
    walk.end()
  } catch (error) {
    walk.broken(error)
  }
  return walk.result()
}

/** From the first event to the last, looking at everything on the way. */
function createWalk(
  workflow: Workflow,
  instance: InstanceSummary,
  snapshots: readonly StoredSnapshot[],
  observations: readonly StoredObservation[],
) {
  const findings: CheckFinding[] = []
  const { type, id } = instance
  let state: unknown = deepFreeze(workflow.initial())
  let version = 0
  let seenSnapshots = 0
  let decisions = 0
  const lifted: unknown[] = []
  const find = (about: CheckFinding['about'], message: string) => findings.push({ type, id, version, about, message })
  const awaited: { observation: StoredObservation; expected: readonly unknown[] }[] = []

  function compareSnapshot({ state: stored, stateVersion }: StoredSnapshot): void {
    if (stored === undefined) {
      state = deepFreeze(workflow.initial())
      return
    }
    const { version: known = 1, encode } = workflow.snapshots ?? {}
    if (stateVersion !== known) return
    seenSnapshots++
    if (!isDeepStrictEqual(toJsonValue(encode ? encode(state) : state), stored)) {
      find('snapshot', 'The snapshot is not what a replay of the events gives. Raise `snapshots.version`.')
    }
  }

  function replayDecision(observation: StoredObservation): void {
    decisions++
    const { input, decidedAt, outcome, rejection } = observation
    const step = decideStep(workflow, instance, state, input, decidedAt)
    if (step.outcome !== outcome) {
      find('decision', `An input that was ${outcome} would be ${step.outcome} now.`)
    } else if (step.outcome === 'rejected') {
      const isRedacted = workflow.observe?.redactRejection !== undefined
      if (!isRedacted && !isDeepStrictEqual(toJsonValue(step.reason), rejection))
        find('decision', 'An input would be rejected for another reason now.')
    } else awaited.push({ observation, expected: step.events.map(({ json }) => parseJson(json)) })
  }

  function decideAgain(): void {
    for (const observation of observations) {
      if (observation.version === version && !observation.redacted && observation.outcome !== 'already_completed')
        replayDecision(observation)
    }
  }

  return {
    apply(event: AnyEvent) {
      decideAgain()
      version = event.version!
      const { id: eventId, type: eventType, payload, metadata } = event
      const stored = { id: eventId, type: eventType, payload, schemaVersion: metadata.schemaVersion }
      try {
        const value = liftPayload(workflow, stored)
        lifted.push(value)
        state = deepFreeze(workflow.evolve(state, value))
      } catch (error) {
        throw new UndecodableEventError(instance, { type: eventType, version }, error)
      }
      for (const snapshot of snapshots) if (snapshot.version === version) compareSnapshot(snapshot)
    },
    end() {
      decideAgain()
      const isTerminal = workflow.isTerminal?.(state) ?? false
      if (isTerminal !== instance.completed) {
        const is = instance.completed ? 'completed' : 'not completed'
        find('end', `The instance is ${is}, but \`isTerminal\` says ${isTerminal} of its last state.`)
      }
      for (const { observation, expected } of awaited) {
        const first = observation.version
        if (isDeepStrictEqual(expected, toJsonValue(lifted.slice(first, first + observation.events)))) continue
        findings.push({
          type,
          id,
          version: first,
          about: 'decision',
          message: 'An input would lead to other events now.',
        })
      }
    },
    broken(error: unknown) {
      const { message, cause } = error as Error
      find('event', cause instanceof Error ? `${message} (${cause.name})` : message)
    },
    result: (): CheckedInstance => ({
      findings,
      events: version,
      snapshots: seenSnapshots,
      decisions,
      redacted: observations.filter(({ redacted }) => redacted).length,
    }),
  }
}

function toJsonValue(value: unknown): unknown {
  return parseJson(stringifyJson(value ?? null, NO_LIMITS), { maxDepth: 1_010 })
}

const NO_LIMITS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000 }
