/** Webhooks that answer in 100 ms, worked off by one, two and four processes, so that places are the limit and not the cores. */
import { atLeast, later } from '../goals.mjs'
import { compare, inTurns } from '../turns.mjs'
import { GRAPHILE, OURS, OURS_JIT_OFF, POSTS } from './names.mjs'
import { openWebhooks, playCalls, toCalls } from './webhooks.mjs'

const CALLS = 1_000
const ANSWER_MS = 100
/** Of each process, as both libraries are set up. */
const PLACES = 50
/** By the number of processes: how many times the rate of one is wanted. */
const WANTED = { 2: 1.6, 4: 2.5 }

/** `counts` are numbers of processes, 1 among them; `options` are those of `openWebhooks`. */
export async function playSharedBacklog(context, { title, counts, options }) {
  const { contenders, expect } = await openWebhooks(context, options)
  const crews = Object.fromEntries(
    Object.entries(contenders).flatMap(([name, contender]) =>
      (name === POSTS ? [1] : counts).map((count) => [keyOf(name, count), { contender, count }]),
    ),
  )
  const measured = await inTurns(crews, {
    // Processes start anew in every turn, which takes longer than the turn itself.
    rounds: Math.min(context.rounds, 2),
    async play({ contender, count }, { isWarmUp }) {
      await contender.stop()
      await contender.start(count)
      const calls = toCalls(isWarmUp ? CALLS / 5 : CALLS)
      const { settledMs } = await playCalls(contender, expect, calls, { answerMs: ANSWER_MS })
      await contender.stop()
      return (CALLS * 1_000) / settledMs
    },
  })
  const all = compare(measured, { unit: 'calls/s' })
  const jit = (count) =>
    compare(
      Object.fromEntries(
        [OURS, OURS_JIT_OFF].flatMap((name) =>
          measured[keyOf(name, count)] ? [[name, measured[keyOf(name, count)]]] : [],
        ),
      ),
      { unit: 'calls/s' },
    ).jitGoals(describe(count))
  return {
    title: `${CALLS.toLocaleString('en')} events to webhooks that answer in ${ANSWER_MS} ms, ${title}`,
    figures: all.figures,
    goals: [
      ...counts.flatMap(jit),
      ...counts
        .filter((count) => WANTED[count] !== undefined)
        .map((count) =>
          later(atLeast(`${describe(count)} / one`, all.ratio(keyOf(OURS, count), keyOf(OURS, 1)), WANTED[count])),
        ),
      later(atLeast('one / what its places carry', (all.middle(keyOf(OURS, 1)) * ANSWER_MS) / (PLACES * 1_000), 0.8)),
      ...counts.map((count) =>
        later(
          atLeast(
            `aftercommit / graphile-worker, ${describe(count)}`,
            all.ratio(keyOf(OURS, count), keyOf(GRAPHILE, count)),
            1,
          ),
        ),
      ),
    ],
  }
}

function keyOf(name, count) {
  return name === POSTS ? name : `${name}, ${describe(count)}`
}

function describe(count) {
  return count === 1 ? 'one process' : `${count} processes`
}
