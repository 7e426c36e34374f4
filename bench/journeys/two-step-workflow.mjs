/** A workflow of two steps until its end is committed, 8 and 64 of them in flight. */
import { DBOS, OURS } from '../contenders/names.mjs'
import { openWorkflows } from '../contenders/workflows.mjs'
import { atLeast, later } from '../goals.mjs'
import { compare, inTurns } from '../turns.mjs'

/** About a second of each contender. */
const PLAYED = [
  { inFlight: 8, count: 400, wanted: 2 },
  { inFlight: 64, count: 800, wanted: 4 },
]

export async function run(context) {
  const contenders = await openWorkflows(context)
  const results = []
  for (const { inFlight, count, wanted } of PLAYED) {
    const measured = await inTurns(contenders, {
      rounds: context.rounds,
      play: async (contender) => (count * 1_000) / (await contender.ask('play', { count, inFlight })),
    })
    results.push({ inFlight, wanted, rates: compare(measured, { unit: '/s' }) })
  }
  return {
    title: 'workflows of two steps until the end is committed',
    figures: results.flatMap(({ inFlight, rates }) =>
      rates.figures.map(([name, figure]) => [`${name}, ${inFlight} in flight`, figure]),
    ),
    goals: results.flatMap(({ inFlight, wanted, rates }) => [
      ...rates.jitGoals(`${inFlight} in flight`),
      later(atLeast(`aftercommit / DBOS, ${inFlight} in flight`, rates.ratio(OURS, DBOS), wanted)),
    ]),
  }
}
