import { compileCondition, scopeOf, type Verdict } from '../../src/conditions/index.ts'
import { type EventFields, parseJson } from '../../src/events/index.ts'
import { sampleEvent } from '../events/sample-event.ts'

/** The verdict on an event with this payload, or with these fields when more than the payload matters. */
export function verdictOn(source: string, payload: unknown, fields: Partial<EventFields> = {}): Verdict {
  return compileCondition(source).evaluate(scopeOf(sampleEvent({ payload, ...fields }), {}))
}

/** For conditions that must have an answer: one that could not be evaluated fails the test. */
export function holds(source: string, payload: unknown, fields: Partial<EventFields> = {}): boolean {
  const verdict = verdictOn(source, payload, fields)
  if (!verdict.holds && verdict.error !== undefined) throw verdict.error
  return verdict.holds
}

/** Why a condition could not be evaluated. One that could fails the test. */
export function problemOf(source: string, payload: unknown, fields: Partial<EventFields> = {}): string {
  const verdict = verdictOn(source, payload, fields)
  if (verdict.holds || verdict.error === undefined) throw new Error(`${source} was evaluated: ${verdict.holds}`)
  return verdict.error.problem
}

/** A payload as it comes from the log, where large numbers keep their digits. */
export function fromJson(text: string): unknown {
  return parseJson(text)
}
