import { expect, it } from 'vitest'
import type { DeadLetter } from '../../src/dead-letters/index.ts'
import type { DeliveryRecord } from '../../src/delivery/index.ts'
import { type ActionFacts, attemptsAt, decideState, type ExplainedAttempt } from '../../src/observers/explain-action.ts'

const NOTHING: ActionFacts = {
  isAsked: true,
  isReached: true,
  isBehind: false,
  attempts: [],
  delivery: null,
  letter: null,
}
const attempt = (outcome: ExplainedAttempt['outcome']) => ({ outcome }) as ExplainedAttempt
const letter = (status: DeadLetter['status']) => ({ status }) as DeadLetter
const delivery = { state: 'paused' } as DeliveryRecord

it.each<[string, Partial<ActionFacts>, string]>([
  ['nothing is kept of it', {}, 'unrecorded'],
  ['observers have not come to the event', { isReached: false }, 'not_yet'],
  ['the observer does not act', { isAsked: false }, 'not_asked'],
  ['it is recorded as a success', { attempts: [attempt('retry'), attempt('success')] }, 'done'],
  ['the checkpoint lags behind its record', { isReached: false, attempts: [attempt('success')] }, 'done'],
  ['its failure was only logged', { attempts: [attempt('dead')] }, 'given_up'],
  ['it waits in a sequence', { isBehind: true }, 'queued'],
  ['a delivery stands for it', { attempts: [attempt('retry')], delivery }, 'paused'],
  ['it is made again from its letter', { delivery, letter: letter('redriving') }, 'paused'],
  ['it is a dead letter', { attempts: [attempt('dead')], letter: letter('dead') }, 'dead'],
  ['its letter was redriven with success', { letter: letter('resolved') }, 'done'],
  ['its letter was given up', { letter: letter('discarded') }, 'discarded'],
])('where %s, its state says so', (_, facts, expected) => {
  expect(decideState({ ...NOTHING, ...facts })).toBe(expected)
})

it('attempts are those at this action of this observer, and not the record that a delivery stands for it', () => {
  const at = new Date(0)
  const record = { type: 'log', message: '', duration_ms: 1 }
  const runs = [
    { observer: 'a', attempt: 1, at, actions: [{ ...record, name: 'x', outcome: 'kept' as const }] },
    { observer: 'b', attempt: 1, at, actions: [{ ...record, name: 'x', outcome: 'success' as const }] },
    { observer: 'a', attempt: 2, at, actions: [{ ...record, name: 'x', outcome: 'retry' as const, code: 'OB004' }] },
  ]
  expect(attemptsAt(runs, 'a', 'x')).toMatchObject([{ attempt: 2, outcome: 'retry', code: 'OB004', request: null }])
})
