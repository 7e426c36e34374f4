/** 1,000 events of one transaction, each a call of a receiver that answers in 5 ms: when the last one was answered. */
import { GRAPHILE, OURS } from '../contenders/names.mjs'
import { openWebhooks, playCalls, toCalls } from '../contenders/webhooks.mjs'
import { atLeast, atMost, later } from '../goals.mjs'
import { compare, inTurns } from '../turns.mjs'

const CALLS = 1_000
const ANSWER_MS = 5
/** A turn takes a fraction of a second. */
const TURNS_A_ROUND = 2

export async function run(context) {
  const { contenders, expect } = await openWebhooks(context)
  const measured = await inTurns(contenders, {
    rounds: context.rounds * TURNS_A_ROUND,
    play: async (contender) => (await playCalls(contender, expect, toCalls(CALLS), { answerMs: ANSWER_MS })).lastMs,
  })
  const times = compare(measured, { unit: 'ms', less: true })
  return {
    title: `${CALLS.toLocaleString('en')} events of one transaction to webhooks that answer in ${ANSWER_MS} ms: COMMIT to the last answer`,
    figures: times.figures,
    goals: [
      ...times.jitGoals(),
      later(atLeast('aftercommit / graphile-worker, by time', times.ratio(OURS, GRAPHILE), 1.2)),
      later(atMost('the last answer', times.middle(OURS), 300, 'ms')),
    ],
  }
}
