/** What a figure should reach, and whether it does. A later goal is shown when it is missed and fails no run. */

export function atLeast(what, value, wanted) {
  return { what, value: value.toFixed(2), wanted: `goal ≥ ${wanted}`, met: value >= wanted }
}

export function atMost(what, value, wanted, unit) {
  return { what, value: `${value.toFixed(2)} ${unit}`, wanted: `goal ≤ ${wanted} ${unit}`, met: value <= wanted }
}

/** A goal of work that is planned, printed so that everybody sees how far it is. */
export function later(goal) {
  return { ...goal, wanted: `later ${goal.wanted}`, later: true }
}

/** Instead of figures, when there are none. */
export function didNotEnd(error) {
  return { what: 'played to its end', value: error.message, wanted: 'it ends', met: false }
}

/** `ok`, `MISS`, or `later` for a later goal that is not reached yet. */
export function verdictOf({ met, later: isLater }) {
  if (met) return 'ok'
  return isLater ? 'later' : 'MISS'
}

export function anyMissed(results) {
  return results.some(({ goals }) => goals.some((goal) => verdictOf(goal) === 'MISS'))
}
