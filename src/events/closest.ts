/**
 * "Did you mean …?": the known word nearest to what somebody wrote. Used for event names here and for commands and
 * options in the CLI.
 */
export function closest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > LONGEST) return undefined
  const wanted = word.toLowerCase()
  // A third of the word may be wrong, of a short one a letter; beyond that a suggestion confuses more than it helps.
  let best = Math.max(word.length < 4 ? 1 : 2, Math.floor(word.length / 3)) + 1
  let found: string | undefined
  for (const candidate of candidates) {
    if (candidate.length > LONGEST || Math.abs(candidate.length - word.length) >= best) continue
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance >= best) continue
    best = distance
    found = candidate
  }
  return found
}

/** How many letters to insert, drop, replace or swap with their neighbour to get from one word to the other. */
export function editDistance(from: string, to: string): number {
  // Three rows are enough: a swap looks back two letters.
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let cost = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) cost = Math.min(cost, beforeLast[column - 2]! + 1)
      current.push(cost)
    }
    beforeLast = last
    last = current
  }
  return last[to.length]!
}

/** The cost grows with the product of the lengths, and no name of ours is longer. */
const LONGEST = 200
