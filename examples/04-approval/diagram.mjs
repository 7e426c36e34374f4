// Prints the workflow as a diagram, for a README.
// #region diagram
import { exploreWorkflow, toMermaid } from 'aftercommit'
import { defineApproval } from './approval.mjs'

const expenseId = '12'
const machine = exploreWorkflow(defineApproval(), {
  inputs: [
    { type: 'request', expenseId, amount: 300, approvers: ['mara', 'jon'] },
    { type: 'approve', expenseId, who: 'mara' },
    { type: 'refuse', expenseId, who: 'mara' },
  ],
})
console.log(toMermaid(machine).trimEnd())
// #endregion
