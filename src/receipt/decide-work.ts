/** What became of an action, effect or timer, decided from its delivery, its dead letter and its records. Pure. */
import type { DeadLetter } from '../dead-letters/index.ts'
import type { DeliveryRecord, DestinationState } from '../delivery/index.ts'
import type { ExplainedAction } from '../observers/index.ts'
import { reaction } from './decide-subscription.ts'
import type { ActionPart, Reaction, ReceiptAttempt, WorkPart } from './receipt.ts'

/** What delivery knows beyond rows: destinations by name, and names of work that no live process can do. */
export interface DeliveryFacts {
  readonly now: Date
  readonly destinations: ReadonlyMap<string, DestinationState>
  readonly orphans: ReadonlySet<string>
}

export function decideAction(action: ExplainedAction, facts: DeliveryFacts, reader: string | null): ActionPart {
  const { name, type, state, attempts, delivery, letter } = action
  const history: ReceiptAttempt[] = attempts.map((one) => ({ ...one }))
  const last = attempts.at(-1)
  const part = { name, type, destination: delivery?.destination ?? null, history }
  if (delivery !== null) return { ...part, ...ofDelivery(delivery, facts) }
  if (letter !== null) return { ...part, ...ofLetter(letter) }
  switch (state) {
    case 'done':
      return { ...part, ...reaction({ state, at: endOf(last), attempts: last?.attempt ?? 1 }) }
    case 'given_up':
      return {
        ...part,
        ...reaction({ state: 'discarded', at: endOf(last), attempts: last?.attempt ?? 1, error: errorOf(last) }),
      }
    case 'queued':
      return { ...part, ...reaction({ state, waitsFor: 'the action before it in its observer is not over' }) }
    case 'not_yet':
      return { ...part, ...reaction({ state, derived: true, waitsFor: reader }) }
    default:
      return { ...part, ...reaction({ state: 'unrecorded', derived: true }) }
  }
}

/** An effect or timer that stands as a row or as a dead letter. */
export function decideWork(found: DeliveryRecord | DeadLetter, askedBy: string, facts: DeliveryFacts): WorkPart {
  if ('state' in found) {
    const [type = found.name, name = found.name] = found.name.split('/')
    const kind = found.kind === 'timer' ? 'timer' : 'effect'
    return {
      kind,
      name: kind === 'timer' ? 'timer' : name,
      workflow: { type, id: found.key ?? '' },
      askedBy,
      ...ofDelivery(found, facts),
    }
  }
  const kind = found.kind === 'timer' ? 'timer' : 'effect'
  return { kind, name: found.event.type, workflow: { type: found.owner, id: found.key }, askedBy, ...ofLetter(found) }
}

function ofDelivery(delivery: DeliveryRecord, facts: DeliveryFacts): Reaction {
  const { id, state, attempts, error, runAt, lastAttemptAt, letter } = delivery
  return reaction({
    state: letter === null ? state : state === 'running' ? 'running' : 'redriving',
    at: state === 'running' ? lastAttemptAt : (lastAttemptAt ?? delivery.createdAt),
    dueAt: state === 'scheduled' || state === 'retrying' ? runAt : null,
    attempts,
    error,
    delivery: id,
    deadLetter: letter,
    waitsFor: state === 'running' ? null : whyItWaits(delivery, facts),
  })
}

function whyItWaits(delivery: DeliveryRecord, { now, destinations, orphans }: DeliveryFacts): string {
  const { kind, name, state, runAt, destination, attempts } = delivery
  if (orphans.has(`${kind} ${name}`)) return `no live process can do the ${kind} "${name}"`
  const there = destination === null ? undefined : destinations.get(destination)
  if (there?.paused) return `${destination} is paused by ${there.who ?? 'an operator'}`
  if (there && there.circuit !== 'closed') {
    const until = there.openUntil === null ? 'soon' : `at ${there.openUntil.toISOString()}`
    return `the circuit of ${destination} is ${there.circuit} after ${there.failures} failures in a row; the next probe goes ${until}`
  }
  if (there?.restingUntil) return `${destination} asked to be left alone until ${there.restingUntil.toISOString()}`
  if (state === 'paused') return `the ${kind} "${name}" is paused`
  if (runAt > now) {
    const when = runAt.toISOString()
    return attempts > 0 ? `attempt ${attempts + 1} is due at ${when}` : `it is set for ${when}`
  }
  if (there?.concurrency != null || there?.rate != null) return `${destination} has a limit, and others go first`
  return 'it is due and waits for a worker'
}

function ofLetter({ id, status, attempts, error, lastAttemptAt, firstAttemptAt }: DeadLetter): Reaction {
  const facts = { attempts, at: lastAttemptAt ?? firstAttemptAt, deadLetter: id }
  switch (status) {
    case 'resolved':
      return reaction({ ...facts, state: 'done' })
    case 'discarded':
      return reaction({ ...facts, state: 'discarded', error })
    case 'redriving':
      return reaction({ ...facts, state: 'redriving', error, waitsFor: 'it is made work again, as an operator asked' })
    default:
      return reaction({ ...facts, state: 'dead', error, waitsFor: `its ${attempts} attempts are used up` })
  }
}

function endOf(attempt: ExplainedAction['attempts'][number] | undefined): Date | null {
  return attempt?.at ?? null
}

function errorOf(attempt: ExplainedAction['attempts'][number] | undefined): Reaction['error'] {
  if (attempt === undefined) return null
  const { code, message } = attempt
  return { name: 'Error', message, ...(code !== null && { code }) }
}
