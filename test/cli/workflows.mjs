// Workflows for the commands that look at them. `WORKFLOWS=changed` is the code after a careless change, and with
// `WORKFLOWS=brighter` it decides otherwise.
import { accept, after, defineWorkflow, reject } from 'aftercommit'

const isChanged = process.env.WORKFLOWS === 'changed'
const isBrighter = process.env.WORKFLOWS === 'brighter'

export const lamp = defineWorkflow({
  type: 'lamp',
  id: ({ id }) => id,
  uniqueKey: ({ room }) => room,
  initial: () => ({ status: 'dark' }),
  isTerminal: ({ status }) => status === 'broken',
  evolve(state, { type, watts }) {
    if (isChanged && watts > 100) throw new TypeError('too bright')
    return { status: { lit: 'bright', dimmed: 'bright', broke: isChanged ? 'dark' : 'broken' }[type] ?? state.status }
  },
  decide(_, { type, id, watts }) {
    if (type === 'light') {
      const lit = { type: 'lit', watts: isBrighter ? watts * 2 : watts }
      return accept([lit], { timers: [after('2h', { type: 'dim', id }, { key: 'dimmer' })] })
    }
    return type === 'break' ? accept([{ type: isBrighter ? 'burst' : 'broke' }]) : reject('what?')
  },
  observe: {},
})

export default function register(ac) {
  if (process.env.WORKFLOWS !== 'none') ac.workflows.register(lamp)
}
