/**
 * 1,000 events to webhooks that answer in 5 ms, worked off by a process whose database is 0, 2, 20 and 100 ms away (round
 * trip). The events are written next door.
 */
import { openDistance } from '../contenders/distance.mjs'
import { GRAPHILE, OURS, OURS_JIT_OFF, POSTS } from '../contenders/names.mjs'
import { openWebhooks, playCalls, toCalls } from '../contenders/webhooks.mjs'
import { atLeast, later } from '../goals.mjs'
import { compare, inTurns } from '../turns.mjs'

const CALLS = 1_000
const ANSWER_MS = 5
/** Round trips, and the share of the rate next door that is wanted. */
const WANTED = new Map([
  [0, undefined],
  [2, 0.85],
  [20, 0.7],
  [100, undefined],
])

export async function run(context) {
  const distance = await context.own(openDistance(context.server.url))
  const { contenders, expect } = await openWebhooks(context, {
    ours: { reach: (url) => ({ database: distance.through(url) }) },
    peer: { reach: (url) => ({ url: distance.through(url) }) },
  })
  const placed = Object.fromEntries(
    Object.entries(contenders).flatMap(([name, contender]) =>
      (name === POSTS ? [0] : [...WANTED.keys()]).map((ms) => [keyOf(name, ms), { contender, ms }]),
    ),
  )
  const measured = await inTurns(placed, {
    rounds: context.rounds,
    async play({ contender, ms }, { isWarmUp }) {
      await distance.setRoundTrip(ms)
      const calls = toCalls(isWarmUp ? CALLS / 5 : CALLS)
      const { settledMs } = await playCalls(contender, expect, calls, { answerMs: ANSWER_MS })
      await distance.setRoundTrip(0)
      return (CALLS * 1_000) / settledMs
    },
  })
  const all = compare(measured, { unit: 'calls/s' })
  return {
    title: `${CALLS.toLocaleString('en')} events to webhooks that answer in ${ANSWER_MS} ms, with the database at a distance`,
    figures: all.figures,
    goals: [...WANTED].flatMap(([ms, wanted]) => [
      ...compareJit(measured, ms),
      ...(wanted === undefined
        ? []
        : [later(atLeast(`${ms} ms away / next door`, all.ratio(keyOf(OURS, ms), keyOf(OURS, 0)), wanted))]),
      later(
        atLeast(`aftercommit / graphile-worker, ${ms} ms away`, all.ratio(keyOf(OURS, ms), keyOf(GRAPHILE, ms)), 1),
      ),
    ]),
  }
}

function compareJit(measured, ms) {
  const rates = [OURS, OURS_JIT_OFF].map((name) => [name, measured[keyOf(name, ms)]])
  const played = Object.fromEntries(rates.filter(([, values]) => values !== undefined))
  return compare(played, { unit: 'calls/s' }).jitGoals(`${ms} ms away`)
}

function keyOf(name, ms) {
  return name === POSTS ? name : `${name}, ${ms} ms away`
}
