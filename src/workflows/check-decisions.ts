/**
 * Recorded inputs, decided again: would they have the same outcome, and lead to the same events. Each is looked at when
 * the replay comes to the version it was decided on, and compared when the events it led to have come by. Pure but for the
 * code of the workflow.
 */
import { parseJson, stringifyJson } from '../events/index.ts'
import { differingPaths } from './check-paths.ts'
import { type CheckFinding, type DifferingEvent, nameOfError, type Place, toFinding } from './check-report.ts'
import type { StoredObservation } from './check-statements.ts'
import { decideStep } from './decide-step.ts'
import { eventTypeOf } from './names.ts'
import type { InstanceRef } from './store.ts'
import type { Workflow } from './workflow.ts'

export interface DecisionsOptions {
  readonly workflow: Workflow
  /** As far as it is looked at. */
  readonly instance: InstanceRef & { readonly version: number }
  readonly observations: readonly StoredObservation[]
  /** Whether differences show values. */
  readonly values: boolean
}

/** An event that is recorded, as the code of now reads it. */
export interface RecordedEvent extends GivenEvent {
  readonly position: bigint
}

interface GivenEvent {
  readonly type: string
  readonly payload: unknown
}

/** An input that was accepted again. */
interface Accepted {
  readonly place: Place
  readonly input: CheckFinding['input']
  readonly given: readonly GivenEvent[]
  readonly recorded: RecordedEvent[]
  /** How many events it led to. */
  readonly count: number
}

export interface Decisions {
  /** Inputs that were decided here: how many there are, and what is to be said about them. */
  decideAt(place: Place, state: unknown): { readonly count: number; readonly findings: readonly CheckFinding[] }
  /** The next event of the history. */
  compare(event: RecordedEvent): CheckFinding[]
}

export function createDecisions({ workflow, instance, observations, values }: DecisionsOptions): Decisions {
  const byVersion = groupDecidable(observations, instance.version)
  let accepted: Accepted[] = []

  function decideOne(observation: StoredObservation, place: Place, state: unknown): CheckFinding | undefined {
    const { input: recordedInput, inputType, inputId, decidedAt, outcome, rejection } = observation
    const input = { type: inputType, id: inputId, decidedAt }
    const find = (message: string, paths: CheckFinding['paths'] = []) =>
      toFinding(instance, place, 'decision', message, { input, paths })
    try {
      const step = decideStep(workflow, instance, state, recordedInput, decidedAt)
      if (step.outcome !== outcome) return find(`An input that was ${outcome} would be ${step.outcome} now.`)
      if (step.outcome === 'accepted') {
        const given = step.events.map(({ event }) => toGiven(workflow, event))
        accepted.push({ place, input, given, recorded: [], count: observation.events })
        return undefined
      }
      if (workflow.observe?.redactRejection !== undefined) return undefined
      const paths = differingPaths('reason', rejection, toJsonValue(step.reason), { values })
      return paths.length === 0 ? undefined : find('An input would be rejected for another reason now.', paths)
    } catch (error) {
      return find(`An input that was ${outcome} would fail now (${nameOfError(error)}).`)
    }
  }

  return {
    decideAt(place, state) {
      const here = byVersion.get(place.version) ?? []
      byVersion.delete(place.version)
      const findings = here.map((observation) => decideOne(observation, place, state))
      return { count: here.length, findings: findings.filter((finding) => finding !== undefined) }
    },
    compare(event) {
      if (accepted.length === 0) return []
      const recordedEvent = { ...event, payload: toJsonValue(event.payload) }
      for (const one of accepted) one.recorded.push(recordedEvent)
      const whole = accepted.filter(({ recorded, count }) => recorded.length === count)
      if (whole.length > 0) accepted = accepted.filter((one) => !whole.includes(one))
      return whole.flatMap(({ place, input, given, recorded }) => {
        const events = differingEvents(place.version, recorded, given, values)
        if (events.length === 0) return []
        return [toFinding(instance, place, 'decision', 'An input would lead to other events now.', { input, events })]
      })
    },
  }
}

/**
 * By the version they were decided on. An instance goes on while it is looked at: an input whose events lie beyond the
 * version that is looked at is left for the next check.
 */
function groupDecidable(
  observations: readonly StoredObservation[],
  upTo: number,
): Map<number, readonly StoredObservation[]> {
  const groups = new Map<number, StoredObservation[]>()
  for (const observation of observations) {
    const { version, events, redacted, outcome } = observation
    if (redacted || outcome === 'already_completed' || version + events > upTo) continue
    const group = groups.get(version)
    if (group) group.push(observation)
    else groups.set(version, [observation])
  }
  return groups
}

/** One after the other; where one side has fewer, the rest of the other differs. */
function differingEvents(
  after: number,
  recorded: readonly RecordedEvent[],
  given: readonly GivenEvent[],
  values: boolean,
): DifferingEvent[] {
  const places = Array.from({ length: Math.max(recorded.length, given.length) }, (_, n) => n)
  return places.flatMap((n) => {
    const [was, is] = [recorded[n], given[n]]
    const paths = was && is?.type === was.type ? differingPaths('payload', was.payload, is.payload, { values }) : []
    if (was?.type === is?.type && paths.length === 0) return []
    const types = { recorded: was?.type ?? null, now: is?.type ?? null }
    return [{ version: after + n + 1, position: was?.position ?? null, ...types, paths }]
  })
}

function toGiven(workflow: Workflow, event: unknown): GivenEvent {
  return { type: eventTypeOf(workflow.type, event), payload: toJsonValue(event) }
}

/** As it would be read again. */
export function toJsonValue(value: unknown): unknown {
  return parseJson(stringifyJson(value ?? null, NO_LIMITS), { maxDepth: 1_010 })
}

const NO_LIMITS = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000 }
