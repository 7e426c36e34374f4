/**
 * 3,000 events are committed at once. Each becomes a call of a receiver that answers in 5 ms. A turn ends when the database
 * says that nothing is left to do.
 */
import { GRAPHILE, OURS, POSTS } from '../contenders/names.mjs'
import { openWebhooks, playCalls, toCalls } from '../contenders/webhooks.mjs'
import { atLeast, atMost, later } from '../goals.mjs'
import { median } from '../statistics.mjs'
import { compare, inTurns, pick } from '../turns.mjs'

const CALLS = 3_000
const ANSWER_MS = 5

export async function run(context) {
  const { contenders, expect } = await openWebhooks(context)
  const rows = []
  const measured = await inTurns(contenders, {
    rounds: context.rounds,
    async play(contender, { name, isWarmUp }) {
      const before = await contender.rowsSoFar?.()
      const { settledMs } = await playCalls(contender, expect, toCalls(isWarmUp ? CALLS / 4 : CALLS), {
        answerMs: ANSWER_MS,
      })
      if (name === OURS && !isWarmUp) rows.push((100 * ((await contender.rowsSoFar()) - before)) / CALLS)
      return settledMs
    },
  })
  const rates = compare(
    pick(measured, (ms) => (CALLS * 1_000) / ms),
    { unit: 'calls/s' },
  )
  const ratio = rates.ratio(OURS, GRAPHILE)
  return {
    title: `${CALLS.toLocaleString('en')} events to webhooks that answer in ${ANSWER_MS} ms, all at once, until nothing is left`,
    figures: [
      ...rates.figures,
      ['share of the same POSTs without a queue', rates.ratio(OURS, POSTS).toFixed(2)],
      ['calls that became rows', `${median(rows).toFixed(1)} %`],
    ],
    goals: [
      ...rates.jitGoals(),
      atLeast('aftercommit / graphile-worker', ratio, 0.8),
      later(atLeast('aftercommit / graphile-worker', ratio, 1.2)),
      later(atMost('calls that became rows', median(rows), 2, '%')),
    ],
  }
}
