/** A call that is refused with 503 and tried again after 200 ms, give or take a quarter: when the second attempt comes. */
import { OURS } from '../contenders/names.mjs'
import { openWebhooks, playCalls, toCalls } from '../contenders/webhooks.mjs'
import { atMost } from '../goals.mjs'
import { median } from '../statistics.mjs'
import { compare, inTurns, pick } from '../turns.mjs'

const RETRY_MS = 200
/** One after the other, since several failures in a row would open the destination's circuit. */
const CALLS = 8

export async function run(context) {
  const retry = `{ max_attempts = 3, initial_delay = "${RETRY_MS}ms", backoff = "fixed" }`
  const { contenders, expect } = await openWebhooks(context, {
    observers: { call: { on: '"call.placed"', retry } },
    // By default it looks every two seconds for jobs that are due: too seldom for such a retry.
    peer: { retryMs: RETRY_MS, pollInterval: RETRY_MS / 4 },
    bare: { retryMs: RETRY_MS },
  })
  const measured = await inTurns(contenders, {
    rounds: context.rounds,
    async play(contender) {
      const waits = []
      for (let call = 0; call < CALLS; call++) {
        const { wait } = await playCalls(contender, expect, toCalls(1), { answerMs: 1, refusals: 1 })
        waits.push(wait.worst)
      }
      return { middle: median(waits), worst: Math.max(...waits) }
    },
  })
  const middles = compare(
    pick(measured, ({ middle }) => middle),
    { unit: 'ms', less: true },
  )
  const worst = compare(
    pick(measured, ({ worst: most }) => most),
    { unit: 'ms', less: true },
  )
  return {
    title: `a call refused once, tried again after ${RETRY_MS} ms: from the refusal to the second attempt`,
    figures: [...middles.figures, ...worst.figures.map(([name, figure]) => [`${name}, the worst of ${CALLS}`, figure])],
    goals: [
      atMost('the second attempt', middles.middle(OURS), 300, 'ms'),
      atMost('the worst second attempt', worst.middle(OURS), 300, 'ms'),
    ],
  }
}
