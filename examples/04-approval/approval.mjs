// An expense waits for a person. Nobody answers: remind them, then ask the next one, then give up.
// #region workflow
import { accept, after, defineWorkflow, reject } from 'aftercommit'

export function defineApproval({ remindAfter = '2d', escalateAfter = '5d' } = {}) {
  /** Asks one person, and promises to wake up should they not answer. The keys replace the timers of the one before. */
  const ask = (expenseId, who) => ({
    effects: [{ type: 'ask', expenseId, who }],
    timers: [
      after(remindAfter, { type: 'remind', expenseId }, { key: 'reminder' }),
      after(escalateAfter, { type: 'escalate', expenseId }, { key: 'escalation' }),
    ],
  })

  return defineWorkflow({
    type: 'approval',
    id: (input) => input.expenseId,
    initial: () => ({ status: 'new' }),
    isTerminal: ({ status }) => ['approved', 'refused', 'expired'].includes(status),

    evolve(state, event) {
      switch (event.type) {
        case 'requested':
          return { status: 'waiting', amount: event.amount, asked: event.approvers[0], next: event.approvers.slice(1) }
        case 'escalated':
          return { ...state, asked: event.to, next: state.next.slice(1) }
        case 'approved':
        case 'refused':
        case 'expired':
          return { status: event.type, amount: state.amount }
        default:
          return state
      }
    },

    decide(state, input) {
      const { expenseId } = input
      if (input.type === 'request') {
        if (state.status !== 'new') return reject('it was requested before')
        const { amount, approvers } = input
        return accept([{ type: 'requested', amount, approvers }], ask(expenseId, approvers[0]))
      }
      if (state.status !== 'waiting') return reject('nothing was requested')
      switch (input.type) {
        case 'approve':
        case 'refuse':
          if (input.who !== state.asked) return reject(`${state.asked} was asked, not ${input.who}`)
          return accept([{ type: input.type === 'approve' ? 'approved' : 'refused', who: input.who }])
        case 'remind':
          return accept([{ type: 'reminded', who: state.asked }], {
            effects: [{ type: 'remind', expenseId, who: state.asked }],
          })
        case 'escalate': {
          const [next] = state.next
          if (next === undefined) return accept([{ type: 'expired' }])
          return accept([{ type: 'escalated', from: state.asked, to: next }], ask(expenseId, next))
        }
        default:
          return reject(`nobody knows what ${input.type} means`)
      }
    },

    // An expense that was submitted is an input: nobody has to call the workflow.
    on: {
      'expense.submitted': ({ aggregateId, payload }) => ({
        type: 'request',
        expenseId: aggregateId,
        amount: payload.amount,
        approvers: payload.approvers,
      }),
    },
  })
}
// #endregion
