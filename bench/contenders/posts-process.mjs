/** The same POSTs without any queue: the limit of this machine and this receiver. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createCaller } from './caller.mjs'
import { now, readConfig, serve } from './child.mjs'

const { receiver, atOnce = 50, retryMs } = readConfig()
const caller = createCaller(receiver)
serve({
  /** Answers when it begins, not when it is done. */
  post(events) {
    const left = events[Symbol.iterator]()
    // The receiver says when the last one was answered; a failure ends this process.
    for (let n = 0; n < atOnce; n++) void postAll(left)
    return now()
  },
  close: () => caller.close(),
})

async function postAll(events) {
  for (const event of events) {
    while ((await caller.post(event)) !== 200) await sleep(retryMs)
  }
}
