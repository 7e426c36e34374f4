/** 200 events a second, each in a transaction of its own and each a call of a receiver that answers in 5 ms. */
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../contenders/child.mjs'
import { GRAPHILE, OURS } from '../contenders/names.mjs'
import { openWebhooks, toCalls } from '../contenders/webhooks.mjs'
import { atLeast, later } from '../goals.mjs'
import { compare, inTurns, pick } from '../turns.mjs'

const A_SECOND = 200
const ANSWER_MS = 5

export async function run(context) {
  const { contenders, expect } = await openWebhooks(context)
  const seconds = context.quick ? 1 : 4
  const measured = await inTurns(contenders, {
    rounds: context.rounds,
    play: (contender, { isWarmUp }) => playSteadily(contender, expect, isWarmUp ? 1 : seconds),
  })
  const middles = compare(
    pick(measured, ({ p50 }) => p50),
    { unit: 'ms', less: true },
  )
  const tails = compare(
    pick(measured, ({ p99 }) => p99),
    { unit: 'ms', less: true },
  )
  const titled = (what) => (figures) => figures.map(([name, figure]) => [`${name}, ${what}`, figure])
  return {
    title: `${A_SECOND} events/s to webhooks that answer in ${ANSWER_MS} ms: from before the transaction until the call arrives`,
    figures: [...titled('p50')(middles.figures), ...titled('p99')(tails.figures)],
    goals: [
      ...middles.jitGoals(),
      later(atLeast('p50, graphile-worker / aftercommit', middles.ratio(OURS, GRAPHILE), 1)),
      later(atLeast('p99, graphile-worker / aftercommit', tails.ratio(OURS, GRAPHILE), 1)),
    ],
  }
}

/** The pace does not wait for anybody: a slow transaction is a latency of the calls behind it. */
async function playSteadily(contender, expect, seconds) {
  const count = seconds * A_SECOND
  const ended = expect({ calls: count, answerMs: ANSWER_MS })
  const began = now()
  const committing = []
  for (let n = 0; n < count; n++) {
    const due = began + (n * 1_000) / A_SECOND
    if (due > now()) await sleep(due - now())
    const [call] = toCalls(1)
    committing.push(contender.commit([{ ...call, data: { ...call.data, call: n } }]))
  }
  await Promise.all(committing)
  const { answered, latency } = await ended
  if (answered < count) throw new Error(`${answered} of ${count} calls came in time`)
  await contender.settled()
  return latency
}
