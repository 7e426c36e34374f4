// A process whose handlers of every kind have run out of time and never end. After `stop()` it says what is left of it, and
// lives on for as long as something keeps it alive. Usage: node hanging.mjs <url>
import { accept, createAftercommit, defineWorkflow } from '../../../dist/index.js'

const ac = createAftercommit({ database: process.argv[2], runtime: { shutdownTimeout: '200ms' } })
const begun = new Set()
const hang = (name) => () => {
  begun.add(name)
  return new Promise(() => {})
}
const parcel = defineWorkflow({
  type: 'parcel',
  id: ({ id }) => id,
  initial: () => 0,
  evolve: (count) => count + 1,
  decide: () => accept([{ type: 'moved' }], { effects: [{ type: 'move' }] }),
})
const timeout = '50ms'
ac.subscribe({ id: 'plain', timeout, handle: hang('plain') })
ac.subscribe({ id: 'batch', timeout, handleBatch: hang('batch') })
ac.subscribe({ id: 'transactional', timeout, transactional: true, handle: hang('transactional') })
ac.workflows.register(parcel, { effects: { move: { handle: hang('effect'), timeout } } })
ac.hooks.add({ name: 'hook', scope: 'instance', timeout, handle: hang('hook') })
await ac.start()
await ac.emitNow('lamp.lit', { payload: {} })
await ac.workflows.execute(parcel, { id: '1' })
const wanted = ['plain', 'batch', 'transactional', 'effect', 'hook']
while (!wanted.every((name) => begun.has(name))) await new Promise((resolve) => setTimeout(resolve, 10))
await new Promise((resolve) => setTimeout(resolve, 200))
await ac.stop().catch((error) => console.log(`stop: ${error.code}`))
const mayBeLeft = ['PipeWrap', 'TTYWrap', 'Immediate']
console.log(`left: ${process.getActiveResourcesInfo().filter((name) => !mayBeLeft.includes(name))}`)
