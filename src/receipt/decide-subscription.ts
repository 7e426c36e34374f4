/** What became of an event in one subscription, decided from what the database keeps. Pure. */
import { compilePatterns } from '../events/index.ts'
import type { AnyEvent } from '../log/index.ts'
import type { SubscriptionFact } from './facts-statements.ts'
import type { Reaction, SubscriptionPart } from './receipt.ts'

/** Undefined where the subscription has nothing to do with the event. */
export function decideSubscription(fact: SubscriptionFact, event: AnyEvent): SubscriptionPart | undefined {
  const { id, kind, owner, deadLetter } = fact
  if (deadLetter === null && !fact.isParked && !takes(fact, event)) return undefined
  return { id, kind, owner, ...stateOf(fact, event) }
}

function takes({ filter }: SubscriptionFact, event: AnyEvent): boolean {
  if (filter === null) return false
  if (filter.tenant !== null && filter.tenant !== event.tenant) return false
  return compilePatterns(filter.on)(event.type)
}

function stateOf(fact: SubscriptionFact, event: AnyEvent): Reaction {
  const { deadLetter, skipped } = fact
  if (deadLetter !== null && deadLetter.status !== 'resolved') return ofDeadLetter(deadLetter)
  if (fact.isParked) {
    return reaction({
      state: 'parked',
      waitsFor: `an earlier event of the key "${event.key}" is a dead letter of ${fact.id}`,
    })
  }
  if (deadLetter !== null) {
    return reaction({ state: 'done', at: deadLetter.at, attempts: deadLetter.attempts + 1, deadLetter: deadLetter.id })
  }
  if (fact.isFinished) {
    if (skipped === null) return reaction({ state: 'done', derived: true })
    return reaction({ state: 'skipped', at: skipped.at, derived: true })
  }
  return reaction({ state: 'not_yet', derived: true, waitsFor: whyNotYet(fact) })
}

function ofDeadLetter({ id, status, attempts, error, at }: NonNullable<SubscriptionFact['deadLetter']>): Reaction {
  const facts = { attempts, error, at, deadLetter: id }
  if (status === 'discarded') return reaction({ ...facts, state: 'discarded' })
  if (status === 'redriving') {
    return reaction({ ...facts, state: 'redriving', waitsFor: 'its subscription runs it again, as an operator asked' })
  }
  return reaction({ ...facts, state: 'dead', waitsFor: `its ${attempts} attempts are used up` })
}

function whyNotYet({ id, status, reason, owner, position }: SubscriptionFact): string {
  if (status === 'paused') return `${id} is paused`
  if (status === 'stopped') return `${id} is stopped: ${reason ?? 'its failure policy stopped it'}`
  if (status === 'failing') return `${id} is failing: ${reason ?? 'event after event ran out of attempts'}`
  if (owner === null) return `no process runs ${id}, whose checkpoint is at position ${position}`
  return `${id} has come to position ${position}${reason === null ? '' : `: ${reason}`}`
}

/** A reaction with the fields that differ from "nothing is kept". */
export function reaction(facts: Partial<Reaction> & Pick<Reaction, 'state'>): Reaction {
  return {
    at: null,
    derived: false,
    dueAt: null,
    attempts: 0,
    error: null,
    deadLetter: null,
    delivery: null,
    waitsFor: null,
    ...facts,
  }
}
