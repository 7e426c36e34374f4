/** What a check found, and how much it looked at. Places are named; values only where they are asked for. */
import { AftercommitError } from '../errors.ts'
import type { DifferingPath } from './check-paths.ts'
import type { InstanceRef } from './store.ts'

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
  /** Instances that were checked from a snapshot on: retention has removed their first events. */
  readonly fromSnapshot: number
  /** Instances that are over and could not be checked: retention has removed their first events, and no snapshot helps. */
  readonly notCheckable: number
  /**
   * Instances that are not over, whose newest snapshot has another `snapshots.version`. This code replays what was before
   * it, which retention does not keep for them.
   */
  readonly outdated: number
}

export interface CheckFinding {
  readonly type: string
  readonly id: string
  /** Of the last event before it. */
  readonly version: number
  /** Of that event; null before the first, and where it is gone. */
  readonly position: bigint | null
  readonly about: 'event' | 'end' | 'snapshot' | 'decision'
  readonly message: string
  /** The recorded input that would be decided otherwise. */
  readonly input: CheckedInput | null
  /** The events that it would not lead to now, or only now. */
  readonly events: readonly DifferingEvent[]
  /** Where the snapshot, or the reason of a rejection, differs. */
  readonly paths: readonly DifferingPath[]
}

export interface CheckedInput {
  readonly type: string | null
  /** Its input id. */
  readonly id: string | null
  readonly decidedAt: Date
}

export interface DifferingEvent {
  readonly version: number
  /** Null where none is recorded. */
  readonly position: bigint | null
  /** The type that is recorded; null: nothing is. */
  readonly recorded: string | null
  /** The type that the code at hand gives; null: it gives nothing. */
  readonly now: string | null
  /** Where the payloads differ, if the types do not. */
  readonly paths: readonly DifferingPath[]
}

/** Where in a history. */
export type Place = Pick<CheckFinding, 'version' | 'position'>

export function toFinding(
  { type, id }: InstanceRef,
  { version, position }: Place,
  about: CheckFinding['about'],
  message: string,
  more: Partial<Pick<CheckFinding, 'input' | 'events' | 'paths'>> = {},
): CheckFinding {
  return { type, id, version, position, about, message, input: null, events: [], paths: [], ...more }
}

/** Of an error of somebody's code, whose message may quote anything. */
export function nameOfError(error: unknown): string {
  if (error instanceof AftercommitError) return error.code
  return error instanceof Error ? error.name : typeof error
}
