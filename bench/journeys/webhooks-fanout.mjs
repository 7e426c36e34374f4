/** One event that 33 rules answer with a webhook each: when the last of the 33 was answered. */
import { setTimeout as sleep } from 'node:timers/promises'
import { OURS } from '../contenders/names.mjs'
import { openWebhooks, playCalls, toCalls } from '../contenders/webhooks.mjs'
import { atMost, later } from '../goals.mjs'
import { median } from '../statistics.mjs'
import { compare, inTurns } from '../turns.mjs'

const CALLS = 33
const EVENTS = 10
const ANSWER_MS = 1
/** Between two events, so that each finds an idle process. */
const PAUSE_MS = 30

export async function run(context) {
  const paths = Array.from({ length: CALLS }, (_, n) => `/rule-${n}`)
  const toEach = (call) => paths.map((path) => ({ ...call, path }))
  const { contenders, expect } = await openWebhooks(context, {
    observers: Object.fromEntries(paths.map((path) => [path.slice(1), { on: '"call.placed"', path }])),
    peer: { toSpecs: (call) => toEach(call).map((payload) => ({ identifier: 'call', payload })) },
    bare: { toPosts: toEach },
  })
  const measured = await inTurns(contenders, {
    rounds: context.rounds,
    async play(contender) {
      const times = []
      for (let event = 0; event < EVENTS; event++) {
        const { lastMs } = await playCalls(contender, expect, toCalls(1), { answerMs: ANSWER_MS, calls: CALLS })
        times.push(lastMs)
        await sleep(PAUSE_MS)
      }
      return median(times)
    },
  })
  const times = compare(measured, { unit: 'ms', less: true })
  return {
    title: `one event, ${CALLS} webhooks that answer in ${ANSWER_MS} ms: COMMIT to the last answer`,
    figures: times.figures,
    goals: [
      ...times.jitGoals(),
      atMost(`the last of ${CALLS}`, times.middle(OURS), 50, 'ms'),
      later(atMost(`the last of ${CALLS}`, times.middle(OURS), 20, 'ms')),
    ],
  }
}
