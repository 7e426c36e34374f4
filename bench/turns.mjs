/**
 * Contenders of a journey take turns, and each round goes the other way round, so that being first profits nobody. What
 * counts is the ratio of two turns of the same round.
 */
import { OURS, OURS_JIT_OFF } from './contenders/names.mjs'
import { atLeast } from './goals.mjs'
import { median, medianRatio } from './statistics.mjs'

/** What `play` measured of each contender, a value per round, after one round to warm up. */
export async function inTurns(contenders, { rounds, play }) {
  const measured = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    const order = Object.entries(contenders)
    if (round % 2 === 1) order.reverse()
    for (const [name, contender] of order) {
      const value = await play(contender, { name, isWarmUp: round === 0 })
      if (round > 0) measured[name].push(value)
    }
  }
  return measured
}

/** One number of each turn, by the name of the contender. */
export function pick(measured, choose) {
  return Object.fromEntries(Object.entries(measured).map(([name, turns]) => [name, turns.map(choose)]))
}

/** Values of each turn by the name of the contender; with `less`, a smaller one is better. */
export function compare(byName, { unit, less = false }) {
  const best = (name) => (less ? 1 / Math.min(...byName[name]) : Math.max(...byName[name]))
  return {
    figures: Object.entries(byName).map(([name, values]) => [name, withSpread(values, unit)]),
    /** How many times as good the first is: 2 is twice the rate, or half the time. */
    ratio: (name, other) =>
      less ? medianRatio(byName[other], byName[name]) : medianRatio(byName[name], byName[other]),
    middle: (name) => median(byName[name]),
    /** JIT must cost nothing. The best turns are compared, since whatever disturbs a turn only makes it worse. */
    jitGoals: (line) =>
      byName[OURS_JIT_OFF] === undefined
        ? []
        : [
            atLeast(
              `jit on / jit off, best turns${line === undefined ? '' : `, ${line}`}`,
              best(OURS) / best(OURS_JIT_OFF),
              0.95,
            ),
          ],
  }
}

/** Such as `1,234 /s (1,180 to 1,301)`: the median, the least and the most. */
export function withSpread(values, unit) {
  return `${show(median(values))} ${unit} (${show(Math.min(...values))} to ${show(Math.max(...values))})`
}

function show(value) {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
