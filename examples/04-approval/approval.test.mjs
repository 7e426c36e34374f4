// #region test
import { it } from 'node:test'
import { given } from 'aftercommit/testing'
import { defineApproval } from './approval.mjs'

const approval = defineApproval()
const expenseId = '12'
const request = { type: 'request', expenseId, amount: 300, approvers: ['mara', 'jon'] }
const requested = { type: 'requested', amount: 300, approvers: ['mara', 'jon'] }

it('reminds after two days and asks the next one after five', () => {
  given(approval)
    .when(request)
    .then({ events: [requested], effects: [{ type: 'ask', expenseId, who: 'mara' }] })
    .whenTimePasses('2d')
    .then({ events: [{ type: 'reminded', who: 'mara' }] })
    .whenTimePasses('3d')
    .then({
      events: [{ type: 'escalated', from: 'mara', to: 'jon' }],
      effects: [{ type: 'ask', expenseId, who: 'jon' }],
      state: { status: 'waiting', amount: 300, asked: 'jon', next: [] },
    })
})

it('takes the word of the one who was asked', () => {
  const waiting = given(approval, [requested])
  waiting.when({ type: 'approve', expenseId, who: 'jon' }).then({ rejected: 'mara was asked, not jon' })
  waiting
    .when({ type: 'approve', expenseId, who: 'mara' })
    .then({ events: [{ type: 'approved', who: 'mara' }], completed: true })
})
// #endregion

it('gives up when the last one does not answer either', () => {
  given(approval)
    .when(request)
    .then({ outcome: 'accepted' })
    .whenTimePasses('10d')
    .then({
      events: [
        { type: 'reminded', who: 'mara' },
        { type: 'escalated', from: 'mara', to: 'jon' },
        { type: 'reminded', who: 'jon' },
        { type: 'expired' },
      ],
      completed: true,
    })
})

it('takes no second request, and none for what is over', () => {
  given(approval, [requested]).when(request).then({ rejected: 'it was requested before' })
  given(approval, [requested, { type: 'refused', who: 'mara' }])
    .when({ type: 'approve', expenseId, who: 'mara' })
    .then({ outcome: 'completed' })
})
