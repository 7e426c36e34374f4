// Two expenses are submitted. Mara is on holiday: she is reminded, then Jon is asked. He approves the first and refuses the
// second. Nobody calls the workflow: it follows the events of the log.
// #region main
import { randomUUID } from 'node:crypto'
import { createAftercommit, defineEvents } from 'aftercommit'
import { z } from 'zod'
import { defineApproval } from './approval.mjs'

const events = defineEvents({ 'expense.submitted': z.object({ amount: z.number(), approvers: z.array(z.string()) }) })
const approval = defineApproval({ remindAfter: '500ms', escalateAfter: '2s' })
const ac = createAftercommit({ events, database: process.env.DATABASE_URL }) // none: the embedded Postgres
await ac.migrate()

ac.workflows.register(approval, {
  effects: {
    async ask({ expenseId, who }) {
      console.log(`${who}, may expense ${nameOf(expenseId)} be paid?`)
      if (who === 'jon') answers.push({ type: nameOf(expenseId) === 'chairs' ? 'approve' : 'refuse', expenseId, who })
    },
    remind: async ({ expenseId, who }) => console.log(`${who}, expense ${nameOf(expenseId)} waits for you.`),
  },
})
// #endregion

/** What people have decided and not said yet: in an application, a request to your server. */
const answers = []
const expenses = ['chairs', 'champagne'].map((name) => `${name}/${randomUUID()}`)
await ac.start()
for (const id of expenses) {
  const payload = { amount: 300, approvers: ['mara', 'jon'] }
  await ac.transaction((tx) => tx.emit('expense.submitted', { aggregate: { type: 'expense', id }, payload }))
}

for (const over = new Set(); over.size < expenses.length; ) {
  const answer = answers.shift()
  if (answer === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    continue
  }
  const { outcome } = await ac.workflows.execute(approval, answer)
  const { state } = await ac.workflows.query(approval, answer.expenseId)
  console.log(`${nameOf(answer.expenseId)}: ${outcome}, ${state.status}`)
  over.add(answer.expenseId)
}
await ac.stop()

function nameOf(expenseId) {
  return expenseId.split('/')[0]
}
