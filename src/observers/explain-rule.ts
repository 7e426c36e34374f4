/** Whether a rule concerns an event, and why not. Pure: the rule may be one that was in force long ago. */
import { type Condition, compileCondition, type ExplainedPart, type Scope, Span } from '../conditions/index.ts'
import { compilePatterns, isUndecodable } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'

/** An observer as it is kept in the database, without what it sends. */
export interface Rule {
  /** The group it belongs to; the default group has no name here. */
  readonly group?: string
  readonly on: readonly string[]
  readonly entity: string | null
  readonly condition: string | null
  readonly strict: boolean
  /** The next action starts when the one before is done or dead. */
  readonly sequential: boolean
  readonly actions: readonly { readonly name: string; readonly type: string }[]
}

/**
 * matched: it acts. type, entity: it is about other events. condition_false, field_absent: the condition does not hold.
 * condition_error: whether it holds cannot be told, which is a failure. unreadable: the event itself cannot be read.
 * not_in_force: it came into force later.
 */
export type RuleVerdict =
  | 'matched'
  | 'type'
  | 'entity'
  | 'condition_false'
  | 'field_absent'
  | 'condition_error'
  | 'unreadable'
  | 'not_in_force'

export interface Judgement {
  readonly verdict: RuleVerdict
  /** A sentence for people. */
  readonly reason: string
  /** Every part of the condition with its value, which comes from the payload; empty when it was not asked. */
  readonly parts: readonly ExplainedPart[]
}

export function judge(rule: Rule, event: AnyEvent, scope: Scope): Judgement {
  const { on, entity, condition } = rule
  if (!compilePatterns(on)(event.type)) return without('type', `It reacts to ${on.join(', ')}, and not to this type.`)
  if (entity !== null && entity !== event.aggregateType) {
    const found = event.aggregateType === null ? 'to none' : `to "${event.aggregateType}"`
    return without('entity', `It reacts to events of "${entity}", and this one belongs ${found}.`)
  }
  if (isUndecodable(event)) return without('unreadable', 'What is stored of the event cannot be read.')
  if (condition === null) return without('matched', 'It reacts to every event of this type.')
  const compiled = compile(condition, rule.strict)
  return 'problem' in compiled ? without('condition_error', compiled.problem) : ask(compiled, scope)
}

/** It compiled when it came into force; a newer release may have grown stricter. */
function compile(source: string, strict: boolean): Condition | { readonly problem: string } {
  try {
    return compileCondition(source, { strict })
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

function ask(condition: Condition, scope: Scope): Judgement {
  const { verdict, parts: explained } = condition.explain(scope)
  const parts = explained.map(readable)
  if (verdict.holds) return { verdict: 'matched', reason: 'Its condition holds.', parts }
  if (verdict.error !== undefined) return { verdict: 'condition_error', reason: verdict.error.message, parts }
  if (verdict.absent === undefined) return { verdict: 'condition_false', reason: 'Its condition does not hold.', parts }
  return { verdict: 'field_absent', reason: `Its condition needs ${verdict.absent}, which this event has not.`, parts }
}

/** As JSON can hold it: a duration is written as CEL writes it. What the environment holds may be a secret. */
function readable(part: ExplainedPart): ExplainedPart {
  if (typeof part.value !== 'boolean' && part.value !== undefined && /\benv\b/.test(part.source))
    return { ...part, value: '***' }
  return part.value instanceof Span ? { ...part, value: String(part.value) } : part
}

function without(verdict: RuleVerdict, reason: string): Judgement {
  return { verdict, reason, parts: [] }
}
