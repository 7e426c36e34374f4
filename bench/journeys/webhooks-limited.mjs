/** 20 calls of 100 ms, two at once: no contender can be done before a second is over. */
import { GRAPHILE, OURS } from '../contenders/names.mjs'
import { openWebhooks, playCalls, toCalls } from '../contenders/webhooks.mjs'
import { atLeast, atMost, later } from '../goals.mjs'
import { compare, inTurns } from '../turns.mjs'

const CALLS = 20
const AT_ONCE = 2
const ANSWER_MS = 100

export async function run(context) {
  const { contenders, expect } = await openWebhooks(context, {
    observers: { call: { on: '"call.placed"', concurrency: AT_ONCE } },
    peer: { concurrentJobs: AT_ONCE },
    bare: { atOnce: AT_ONCE },
  })
  const measured = await inTurns(contenders, {
    rounds: context.rounds,
    async play(contender, { name }) {
      const { lastMs, mostAtOnce } = await playCalls(contender, expect, toCalls(CALLS), { answerMs: ANSWER_MS })
      if (mostAtOnce > AT_ONCE) throw new Error(`${name} made ${mostAtOnce} calls at once`)
      return lastMs
    },
  })
  const times = compare(measured, { unit: 'ms', less: true })
  return {
    title: `${CALLS} calls of ${ANSWER_MS} ms under a limit of ${AT_ONCE} at once: COMMIT to the last answer`,
    figures: times.figures,
    goals: [
      ...times.jitGoals(),
      atMost('the last answer', times.middle(OURS), 1_500, 'ms'),
      later(atLeast('aftercommit / graphile-worker, by time', times.ratio(OURS, GRAPHILE), 0.95)),
    ],
  }
}
