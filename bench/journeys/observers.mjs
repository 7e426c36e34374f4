/**
 * 10,000 events to an observer with a condition and an action that does nothing, until the checkpoint and the records of
 * all runs are committed. All processes run before the clock does.
 */
import { openAftercommit } from '../contenders/aftercommit.mjs'
import { openBareObserver } from '../contenders/bare-observer.mjs'
import { now } from '../contenders/child.mjs'
import { openGraphile } from '../contenders/graphile.mjs'
import { BARE_SQL, GRAPHILE, OURS, OURS_JIT_OFF } from '../contenders/names.mjs'
import { toCalls } from '../contenders/webhooks.mjs'
import { atLeast, later } from '../goals.mjs'
import { compare, inTurns } from '../turns.mjs'

const EVENTS = 10_000
const RULES = `
[observers.big]
on = "call.placed"
condition = "total > 50 && customer.tier == 'gold'"
actions = [{ type = "custom", handler = "nothing" }]
`

export async function run({ server, own, rounds }) {
  const ours = (name, options) => own(openAftercommit({ server, name, rules: RULES, recordsRuns: true, ...options }))
  const contenders = {
    [OURS]: await ours('observer'),
    ...(server.about.jit === 'on' && { [OURS_JIT_OFF]: await ours('observer_jit_off', { jit: 'off' }) }),
    [GRAPHILE]: await own(openGraphile({ server, name: 'observer_peer', toSpecs: toNothing })),
    [BARE_SQL]: await own(openBareObserver({ server, name: 'observer_bare' })),
  }
  for (const contender of Object.values(contenders)) await contender.start()
  const measured = await inTurns(contenders, {
    rounds,
    async play(contender, { isWarmUp }) {
      const events = isWarmUp ? EVENTS / 4 : EVENTS
      const committed = await contender.commit(toCalls(events))
      await contender.settled()
      return (events * 1_000) / (now() - committed)
    },
  })
  const rates = compare(measured, { unit: 'events/s' })
  return {
    title: `${EVENTS.toLocaleString('en')} events to an observer whose action does nothing, until checkpoint and run records are committed`,
    figures: rates.figures,
    goals: [...rates.jitGoals(), later(atLeast('aftercommit / graphile-worker', rates.ratio(OURS, GRAPHILE), 1))],
  }
}

function toNothing({ data }) {
  return { identifier: 'nothing', payload: data }
}
