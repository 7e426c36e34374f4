/**
 * 2,000 calls of 50 ms. The worker is killed with SIGKILL after the first second, and another process is started in its
 * place. The killed worker can tell nobody; graphile-worker is told by hand, since it would take the jobs again after hours.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../contenders/child.mjs'
import { GRAPHILE, OURS, POSTS } from '../contenders/names.mjs'
import { openWebhooks, toCalls } from '../contenders/webhooks.mjs'
import { atLeast, atMost, later } from '../goals.mjs'
import { compare, inTurns, pick } from '../turns.mjs'

const CALLS = 2_000
const ANSWER_MS = 50
const KILL_AFTER_MS = 1_000

export async function run(context) {
  const { contenders, expect } = await openWebhooks(context)
  const measured = await inTurns(contenders, {
    rounds: context.rounds,
    play: (contender, { name, isWarmUp }) => playKill(contender, expect, { name, calls: isWarmUp ? CALLS / 2 : CALLS }),
  })
  const times = compare(
    pick(measured, ({ ms }) => ms / 1_000),
    { unit: 's', less: true },
  )
  const repeats = compare(
    pick(measured, ({ repeats: count }) => count),
    { unit: 'calls' },
  )
  return {
    title: `${CALLS.toLocaleString('en')} events to webhooks that answer in ${ANSWER_MS} ms, kill -9 after ${KILL_AFTER_MS / 1_000} s: COMMIT until nothing is left`,
    figures: [
      ...times.figures,
      ...repeats.figures.filter(([name]) => name !== POSTS).map(([name, figure]) => [`${name}, came twice`, figure]),
    ],
    goals: [
      ...times.jitGoals(),
      atMost('until nothing is left', times.middle(OURS), 10, 's'),
      later(atLeast('aftercommit / graphile-worker told by hand, by time', times.ratio(OURS, GRAPHILE), 1)),
    ],
  }
}

/** The bare POSTs are the limit of a worker that is never killed. */
async function playKill(contender, expect, { name, calls }) {
  const ended = expect({ calls, answerMs: ANSWER_MS })
  const committed = await contender.commit(toCalls(calls))
  if (name !== POSTS) {
    await sleep(KILL_AFTER_MS)
    await contender.kill()
    await contender.start()
    await contender.freeJobsOfTheDead?.()
  }
  const heard = await ended
  if (heard.answered < calls) throw new Error(`${name}: ${heard.answered} of ${calls} calls came in time`)
  await contender.settled()
  return { ms: now() - committed, repeats: heard.repeats }
}
